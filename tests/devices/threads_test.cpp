// Several plugins concurrently, each with its own threads; and a long loop without memory growth.
#include <gtest/gtest.h>

#include <fstream>
#include <thread>

#include "devices/at_hand.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/tensor.h"

using namespace plugrad;

namespace {

constexpr int kThreadsEach = 2, kRounds = 12;

int wrong_values(const std::string& device, int number) {
  int wrong = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto own = static_cast<float>(number * 100 + round);
    const Tensor x = Tensor::full({33, 17}, own, DType::F32, device).contiguous();
    const Tensor y = (x * 2 + 1).contiguous();
    wrong += (x + y).sum().item<float>() != 33 * 17 * (3 * own + 1);
    wrong += y.to_vector<float>()[560] != 2 * own + 1;
  }
  return wrong;
}

TEST(DevicesTogether, ThreadsOfEachDeviceSeeTheirOwnValues) {
  const std::vector<std::string> devices = devices_at_hand();
  std::vector<std::thread> threads;
  std::vector<std::string> failures(devices.size() * kThreadsEach);
  for (size_t i = 0; i < failures.size(); ++i)
    threads.emplace_back([&, i] {
      const std::string& device = devices[i / kThreadsEach];
      try {
        if (const int wrong = wrong_values(device, static_cast<int>(i)))
          failures[i] = device + ": wrong values: " + std::to_string(wrong);
      } catch (const std::exception& error) {
        failures[i] = device + ": " + error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

class Memory : public testing::TestWithParam<std::string> {};

TEST_P(Memory, ALongLoopLeavesItAsItWas) {
  const std::string& name = GetParam();
  const runtime::Device& device = runtime::Registry::instance().find_device(name);
  Tensor state = Tensor::zeros({64, 64}, DType::F32, name).contiguous();
  const auto run = [&](int steps) {
    for (int i = 0; i < steps; ++i) {
      state.assign((state * 0.5 + Tensor::full({64, 64}, 1.0f, DType::F32, name)).contiguous());
      state.realize();
      if (i % 10 == 0) {
        EXPECT_LE(state.max().item<float>(), 2.0f);
      }
    }
    engine::Session::current().collect();
  };
  run(100);
  const runtime::MemoryStats before = device.memory_stats();
  const uint64_t resident = resident_bytes();
  run(600);
  const runtime::MemoryStats after = device.memory_stats();
  EXPECT_EQ(after.used_bytes, before.used_bytes);
  EXPECT_LE(after.cached_bytes, before.cached_bytes);
  EXPECT_EQ(after.allocations, before.allocations) << "buffers of the first steps serve the others";
  EXPECT_LT(resident_bytes(), resident + (6u << 20)) << "of the whole process";
}

INSTANTIATE_TEST_SUITE_P(Devices, Memory, testing::ValuesIn(devices_at_hand()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
