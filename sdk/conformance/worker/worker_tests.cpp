// perf: what isolation costs. The test starts a second worker with the same plugin.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "conformance/test.h"
#include "conformance/worker/isolated_kernels.h"
#include "plugrad/sdk/ir_builder.h"

namespace plugrad::conformance {
namespace {

using namespace std::chrono_literals;

std::vector<std::byte> twice_kernel() {
  sdk::IrBuilder builder("twice");
  builder.set_groups(16);
  const auto in = builder.buffer(PGR_DTYPE_F32, 16, PGR_PARAM_READ);
  const auto out = builder.buffer(PGR_DTYPE_F32, 16, PGR_PARAM_WRITE);
  const auto index = builder.group_id(0);
  const auto value = builder.load(in, index);
  builder.store(out, index, builder.alu(PGR_OP_ADD, {value, value}));
  return builder.finish();
}

// Median of 2000 launches one behind the other, with both copies.
void round_trip(Context& context) {
  using Clock = std::chrono::steady_clock;
  context.device().require_claims(twice_kernel());
  WorkerTarget target;
  target.program = std::filesystem::read_symlink("/proc/self/exe").string();
  target.plugin_path = context.plugin().path();
  target.device_index = context.plugin().device_index();
  target.device_options = context.plugin().device_options();
  IsolatedKernels kernels(target, 20s);
  const IsolatedLaunch launch{kernels.load(twice_kernel()),
                              {kernels.allocate(64), kernels.allocate(64)},
                              {},
                              {16, 1, 1},
                              {1, 1, 1}};
  auto* numbers = reinterpret_cast<float*>(launch.buffers[0].data());
  std::vector<double> microseconds;
  for (int i = 0; i < 2000; ++i) {
    numbers[3] = static_cast<float>(i);
    const auto start = Clock::now();
    kernels.launch(launch);
    microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    const float result = reinterpret_cast<const float*>(launch.buffers[1].data())[3];
    expect(result == 2.0f * static_cast<float>(i),
           fmt::format("the worker gave {} for 2 * {}", result, i));
  }
  std::nth_element(microseconds.begin(), microseconds.begin() + 1000, microseconds.end());
  context.measure("us", microseconds[1000], "median of 2000 launches of 16 elements");
}

}  // namespace

void add_worker_tests(Tests& tests) {
  Test test;
  test.id = "perf.worker.round_trip";
  test.level = Level::Perf;
  test.run = round_trip;
  tests.push_back(std::move(test));
}

}  // namespace plugrad::conformance
