// Tests launches in a worker: values, times, and crashes.
#include "conformance/worker/isolated_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

WorkerTarget target_with(const std::string& fault) {
  WorkerTarget target;
  target.program = CONFORMANCE_WORKER;
  target.plugin_path = FAULTY_PLUGIN;
  if (!fault.empty()) target.device_options["fault"] = fault;
  return target;
}

// out[i] += in[i] * factor
std::vector<std::byte> scaled_sum() {
  sdk::IrBuilder b("scaled_sum");
  b.set_groups(64);
  const auto in = b.buffer(PGR_DTYPE_I32, 64, PGR_PARAM_READ);
  const auto factor = b.scalar(PGR_DTYPE_I32, 0, 1000);
  const auto out = b.buffer(PGR_DTYPE_I32, 64);
  const auto index = b.group_id(0);
  const auto product = b.alu(PGR_OP_MUL, {b.load(in, index), factor});
  b.store(out, index, b.alu(PGR_OP_ADD, {b.load(out, index), product}));
  return b.finish();
}

struct SharedNumbers {
  explicit SharedNumbers(std::span<std::byte> memory)
      : bytes(memory), numbers(reinterpret_cast<int32_t*>(memory.data()), memory.size() / 4) {}
  std::span<std::byte> bytes;
  std::span<int32_t> numbers;
};

TEST(IsolatedKernels, ComputeOnSharedMemory) {
  IsolatedKernels kernels(target_with(""), 10s);
  const SharedNumbers in(kernels.allocate(256)), out(kernels.allocate(256));
  IsolatedLaunch launch{
      kernels.load(scaled_sum()), {in.bytes, out.bytes}, {5}, {64, 1, 1}, {1, 1, 1}};
  for (int i = 0; i < 64; ++i) in.numbers[i] = i, out.numbers[i] = 1000;
  kernels.launch(launch);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(out.numbers[i], 1000 + 5 * i);
  std::this_thread::sleep_for(5ms);  // the worker is idle by now
  launch.scalars = {2};
  EXPECT_GT(kernels.launch(launch), 0u);
  for (int i = 0; i < 64; ++i) ASSERT_EQ(out.numbers[i], 1000 + 7 * i);
}

template <typename Action>
std::string message_of(Action&& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(IsolatedKernels, WhatThePluginRefusesIsAnErrorAndTheWorkerGoesOn) {
  IsolatedKernels kernels(target_with(""), 10s);
  EXPECT_THAT(message_of([&] { kernels.load(std::vector<std::byte>(64)); }),
              HasSubstr("a header has"));
  const uint64_t kernel = kernels.load(scaled_sum());
  EXPECT_THAT(message_of([&] { kernels.launch({kernel, {}, {5}, {64, 1, 1}, {1, 1, 1}}); }),
              HasSubstr("takes 2 buffers"));
  EXPECT_THAT(message_of([&] { kernels.allocate(uint64_t{1} << 40); }), HasSubstr("used up"));
  const SharedNumbers in(kernels.allocate(256)), out(kernels.allocate(256));
  kernels.launch({kernel, {in.bytes, out.bytes}, {5}, {64, 1, 1}, {1, 1, 1}});
}

TEST(IsolatedKernels, ACrashOrAHangIsAnErrorWithItsStack) {
  for (const auto& [fault, said] : {std::pair("launch-crash", "the launch crashed with SIGSEGV"),
                                    std::pair("launch-hang", "the launch did not return")}) {
    IsolatedKernels kernels(target_with(fault), 1s);
    const SharedNumbers in(kernels.allocate(256)), out(kernels.allocate(256));
    const IsolatedLaunch launch{
        kernels.load(scaled_sum()), {in.bytes, out.bytes}, {5}, {64, 1, 1}, {1, 1, 1}};
    const std::string message = message_of([&] { kernels.launch(launch); });
    EXPECT_THAT(message, HasSubstr(said));
    EXPECT_THAT(message, HasSubstr("libplugrad_plugin_faulty.so"));
    EXPECT_NE(message_of([&] { kernels.launch(launch); }), "");
  }
}

TEST(IsolatedKernels, APluginThatDoesNotOpenIsAnError) {
  WorkerTarget target = target_with("");
  target.plugin_options["fault"] = "entry-crash";
  EXPECT_THAT(message_of([&] { IsolatedKernels kernels(target, 10s); }), HasSubstr("SIGSEGV"));
}

}  // namespace
}  // namespace plugrad::conformance
