// Measures the host's overhead: device calls through runtime::Device against direct calls of the
// plugin's functions, alternately.
#include <cstring>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/micro/micro.h"
#include "bench/peers/raw_launch.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/device/device_state.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

constexpr int kDeviceCalls = 200'000;
constexpr char kLaunch[] = "launch of an empty kernel and wait";
constexpr int kWaits = 200;  // launches, each followed by a wait

// out[0] = a[0] + b[0]
std::vector<std::byte> small_kernel() {
  sdk::IrBuilder b("small");
  const auto out = b.buffer(PGR_DTYPE_F32, 1, PGR_PARAM_WRITE);
  const auto x = b.buffer(PGR_DTYPE_F32, 1, PGR_PARAM_READ);
  const auto y = b.buffer(PGR_DTYPE_F32, 1, PGR_PARAM_READ);
  const auto zero = b.constant_int(PGR_DTYPE_I32, 0);
  b.store(out, zero, b.alu(PGR_OP_ADD, {b.load(x, zero), b.load(y, zero)}));
  return b.finish();
}

template <class Call>
Round calls(const Call& call) {
  return [call] {
    return time_of([&] {
      for (int i = 0; i < kDeviceCalls; ++i) call();
    });
  };
}

template <class Checked, class Direct>
void compare_calls(const Report& report, const std::string& name, const Checked& checked,
                   const Direct& direct) {
  const std::vector<Timing> timings = measure({calls(checked), calls(direct)}, {.least = 21});
  const auto ns = [](const Timing& t) { return t.best / kDeviceCalls * 1e9; };
  report({.name = "dispatch: " + name,
          .value = ns(timings[0]),
          .unit = "ns",
          .peer = Peer{"the plugin's function", ns(timings[1])},
          .higher_is_better = false});
}

using Wait = std::function<void()>;

// A launch of an empty kernel and the wait for it.
Wait launch_and_wait() {
  runtime::Device& device = runtime::Registry::instance().default_device();
  const auto kernel = device.compile(sdk::IrBuilder("empty").finish(), "empty");
  return [&device, kernel] {
    device.launch(*kernel, {.buffers = {}, .scalars = {}});
    device.synchronize();
  };
}

// Compares with the driver's own functions, alternately.
void report_launch(const Report& report, const RawLaunch& raw) {
  const auto many = [](const Wait& call) -> Round {
    return [call] {
      return time_of([&] {
        for (int i = 0; i < kWaits; ++i) call();
      });
    };
  };
  const auto timings = measure({many(launch_and_wait()), many(raw.launch)}, {.least = 41});
  const auto us = [](const Timing& t) { return t.median / kWaits * 1e6; };
  report({.name = kLaunch,
          .value = us(timings[0]),
          .unit = "us",
          .peer = Peer{raw.name, us(timings[1])},
          .higher_is_better = false});
}

// For plugins without an underlying driver.
Micro launch_micro() {
  return {.name = kLaunch,
          .unit = "us",
          .prepare =
              [] {
                return [call = launch_and_wait()](benchmark::State& state) {
                  for (auto _ : state) call();
                };
              },
          .iterations = kWaits,
          .repetitions = 41};
}

Row launch_row() {
  const std::string plugin = runtime::Registry::instance().default_device().plugin_name();
  const RawLaunch raw = plugin == "OPENCL"   ? raw_opencl_launch()
                        : plugin == "VULKAN" ? raw_vulkan_launch()
                                             : RawLaunch{};
  if (!raw.launch) return micro_row(launch_micro());
  return {{kLaunch}, 0, [raw](Peers&, const Report& report) {
            report_launch(report, raw);
            return true;
          }};
}

void report_dispatch(const Report& report) {
  runtime::Device& device = runtime::Registry::instance().default_device();
  runtime::DeviceState& d = device.state();
  const auto kernel = device.compile(small_kernel(), "small");
  std::vector<std::shared_ptr<runtime::Buffer>> owned;
  std::vector<runtime::Buffer*> buffers;
  std::vector<pgr_buffer*> handles;
  for (int i = 0; i < 3; ++i) {
    owned.push_back(device.allocate(64));
    buffers.push_back(owned.back().get());
    handles.push_back(buffers.back()->handle());
  }
  // A launch without groups returns immediately: measures only the call path.
  runtime::Launch none{.buffers = buffers, .scalars = {}, .group_count = {0, 1, 1}};
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = handles.data();
  desc.buffer_count = 3;
  desc.group_count[1] = desc.group_count[2] = 1;
  for (uint32_t& size : desc.local_size) size = 1;
  compare_calls(
      report, "launch of a kernel with three buffers and no groups",
      [&] { device.launch(*kernel, none); },
      [&] { d.runner.launch(d.handle, nullptr, kernel->handle(), &desc, nullptr, nullptr); });
  const float value = 1;
  compare_calls(
      report, "copy_in of 4 bytes", [&] { buffers[0]->copy_in(&value, sizeof value); },
      [&] {
        d.allocator_api.copy_in(d.handle, nullptr, handles[0], 0, &value, sizeof value, nullptr);
      });
  compare_calls(
      report, "synchronize", [&] { device.synchronize(); },
      [&] { d.device.synchronize(d.handle, nullptr); });
}

}  // namespace

std::vector<Row> dispatch_rows() {
  return {launch_row(), reporting({"dispatch: launch of a kernel with three buffers and no groups",
                                   "dispatch: copy_in of 4 bytes", "dispatch: synchronize"},
                                  report_dispatch)};
}

}  // namespace plugrad::bench
