// Cases that need a fresh process: the order in which compilers are loaded, asynchronous devices
// while another one is waited for, and process exit with work in flight.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "devices/at_hand.h"
#include "errors/fresh_process.h"
#include "plugrad/functional.h"
#include "plugrad/shutdown.h"
#include "plugrad/tensor.h"
#include "unit/base/temporary_directory.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

// Opens no device in this process: devices do not survive a fork.
const std::vector<std::string>& devices_of_a_fresh_process() {
  static const std::vector<std::string> names = [] {
    std::istringstream listed(run_in_fresh_process([](Settings&) {},
                                                   [] {
                                                     std::string text;
                                                     for (const auto& name : devices_at_hand())
                                                       text += name + " ";
                                                     throw Error(ErrorKind::User, text);
                                                   })
                                  .error);
    std::vector<std::string> out;
    std::string word;
    for (listed >> word; listed >> word;) out.push_back(word);
    return out;
  }();
  return names;
}

Outcome run(const std::function<void(Settings&)>& change, const std::function<void()>& body) {
  return run_in_fresh_process(change, [&] {
    body();
    if (testing::Test::HasFailure()) throw std::runtime_error("see above");
  });
}

void compute_on(const std::string& device) {
  const Tensor x = Tensor::from<float>({1, 2, 3}, device);
  EXPECT_EQ((x * 2 + 1).to_vector<float>(), (std::vector<float>{3, 5, 7})) << device;
  EXPECT_EQ((x.exp2() + x.sum()).to_vector<float>(), (std::vector<float>{8, 10, 14})) << device;
}

class LoadOrder : public testing::TestWithParam<std::string> {};

// Several of them load their own LLVM.
TEST_P(LoadOrder, CompilersOfBothKindsWorkInOneProcess) {
  const std::string device = GetParam();
  for (const bool cpu_first : {true, false}) {
    TemporaryDirectory cache;
    const Outcome o = run([&](Settings& s) { s.cache_dir = cache.path(); },
                          [&] {
                            compute_on(cpu_first ? "CPU" : device);
                            compute_on(cpu_first ? device : "CPU");
                            compute_on(cpu_first ? "CPU" : device);
                          });
    EXPECT_TRUE(o.survived) << "CPU first: " << cpu_first;
    EXPECT_EQ(o.error, "") << "CPU first: " << cpu_first;
  }
}

double seconds(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

Tensor products(const std::string& device, int64_t side) {
  Tensor x = Tensor::full({side, side}, 0.5f, DType::F32, device).contiguous();
  for (int i = 0; i < 3; ++i) x = (matmul(x, x) * 0.001).contiguous();
  return x;
}

// Starts work for about a third of a second.
void start_work(const std::string& device) {
  (products(device, 96) + 1).to_vector<float>();
  const double small = seconds([&] { (products(device, 96) * 3).to_vector<float>(); });
  const double larger = std::clamp(std::cbrt(0.3 / small), 1.0, 8.0);
  products(device, static_cast<int64_t>(96 * larger)).realize();
}

// Process exit without waiting, with and without explicit clean-up.
TEST_P(LoadOrder, AProcessEndsWithWorkUnderWay) {
  for (const bool explicitly : {false, true}) {
    const pid_t child = fork();
    if (child == 0) {
      start_work(GetParam());
      if (explicitly) shutdown();
      std::exit(7);  // runs destructors and exit handlers
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status) << ", " << explicitly;
    EXPECT_EQ(WEXITSTATUS(status), 7) << explicitly;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, LoadOrder, testing::ValuesIn(devices_of_a_fresh_process()),
                         [](const auto& tested) { return test_name(tested.param); });

// REFERENCE with its own queue: slow and asynchronous.
void use_asynchronous_reference() {
  runtime::Registry::instance().set_plugin_options("REFERENCE", {{"withdraw", "synchrony"}});
}

Tensor slow_value() {
  const Tensor x = Tensor::ones({160, 160}, DType::F32, "REFERENCE").contiguous();
  return matmul(matmul(x, x).contiguous(), x);
}

TEST(Asynchronous, WhileOneThreadWaitsForADeviceAnotherUsesTheNext) {
  const Outcome o = run([](Settings& s) { s.device = "CPU"; },
                        [] {
                          use_asynchronous_reference();
                          compute_on("CPU");
                          (slow_value() + 3).to_vector<float>();
                          Tensor slow = slow_value() + 1;
                          slow.realize();
                          double waited = 0;
                          std::thread waiting([&] {
                            waited =
                                seconds([&] { EXPECT_EQ(slow.to_vector<float>()[0], 25601.0f); });
                          });
                          std::this_thread::sleep_for(std::chrono::milliseconds(20));
                          const double computed = seconds([] { compute_on("CPU"); });
                          waiting.join();
                          EXPECT_LT(computed * 3, waited) << "the CPU was not held up";
                        });
  EXPECT_EQ(o.error, "");
}

TEST(Asynchronous, ALaunchReturnsBeforeTheKernelHasRun) {
  const Outcome o = run([](Settings& s) { s.device = "CPU"; },
                        [] {
                          use_asynchronous_reference();
                          (slow_value() + 1).to_vector<float>();
                          Tensor slow = slow_value() + 2;
                          const double launched = seconds([&] { slow.realize(); });
                          const double waited = seconds([&] { slow.to_vector<float>(); });
                          EXPECT_LT(launched, waited);
                        });
  EXPECT_EQ(o.error, "");
}

// The failure is reported by the wait: the error lists the kernels that may have caused it.
TEST(Asynchronous, ALateErrorNamesTheKernelsThatWereUnderWay) {
  const Outcome o = run(
      [](Settings& s) {
        s.device = "CPU";
        s.layers = "faults:device=REFERENCE:synchronize=1@DEVICE_LOST";
      },
      [] {
        use_asynchronous_reference();
        Tensor x = (Tensor::from<float>({1, 2}, "REFERENCE") + 1).contiguous();
        x.realize();
        std::string said;
        try {
          x.to_vector<float>();
        } catch (const Error& error) {
          said = error.what();
        }
        EXPECT_THAT(said, HasSubstr("REFERENCE:0 is lost since"));
        EXPECT_THAT(said, HasSubstr("launched since the last wait: E_2"));
        compute_on("CPU");
      });
  EXPECT_EQ(o.error, "");
}

}  // namespace
