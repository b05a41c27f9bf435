// What the host's checks cost: calls of a device through runtime::Device against the same calls of
// the plugin's own functions, in turns.
#include "bench/dispatch.h"

#include <cstring>
#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/raw_launch.h"
#include "plugrad/sdk/ir_builder.h"
#include "runtime/device/device_state.h"
#include "runtime/registry.h"

namespace plugrad::bench {
namespace {

constexpr int kCalls = 200'000;
constexpr int kWaits = 200;  // launches that are waited for one by one

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
      for (int i = 0; i < kCalls; ++i) call();
    });
  };
}

template <class Checked, class Direct>
void compare(const Report& report, const std::string& name, const Checked& checked,
             const Direct& direct) {
  const std::vector<Timing> timings = measure({calls(checked), calls(direct)}, {.least = 21});
  const auto ns = [](const Timing& t) { return t.best / kCalls * 1e9; };
  report({.name = "dispatch: " + name,
          .value = ns(timings[0]),
          .unit = "ns",
          .peer = Peer{"the plugin's function", ns(timings[1])},
          .higher_is_better = false});
}

// One launch and the wait for it, by plugrad and by the driver's own functions, in turns.
void report_launch(const Report& report, runtime::Device& device) {
  const RawLaunch raw = device.plugin_name() == "OPENCL"   ? raw_opencl_launch()
                        : device.plugin_name() == "VULKAN" ? raw_vulkan_launch()
                                                           : RawLaunch{};
  const auto kernel = device.compile(sdk::IrBuilder("empty").finish(), "empty");
  const runtime::Launch one{.buffers = {}, .scalars = {}};
  const auto many = [](const auto& call) -> Round {
    return [call] {
      return time_of([&] {
        for (int i = 0; i < kWaits; ++i) call();
      });
    };
  };
  std::vector<Round> contenders = {many([&] {
    device.launch(*kernel, one);
    device.synchronize();
  })};
  if (raw.launch) contenders.push_back(many(raw.launch));
  const auto timings = measure(contenders, {.least = 41});
  const auto us = [](const Timing& t) { return t.median / kWaits * 1e6; };
  Result result{
      .name = "launch of an empty kernel and wait", .value = us(timings[0]), .unit = "us"};
  if (raw.launch) result.peer = Peer{raw.name, us(timings[1])};
  result.higher_is_better = false;
  report(result);
}

}  // namespace

void report_dispatch(const Report& report) {
  runtime::Device& device = runtime::Registry::instance().default_device();
  report_launch(report, device);
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
  // A launch of no groups ends at once, so that what is left is the way to it.
  runtime::Launch none{.buffers = buffers, .scalars = {}, .group_count = {0, 1, 1}};
  pgr_launch_desc desc;
  PGR_INIT(desc, LAUNCH_DESC);
  desc.buffers = handles.data();
  desc.buffer_count = 3;
  desc.group_count[1] = desc.group_count[2] = 1;
  for (uint32_t& size : desc.local_size) size = 1;
  compare(
      report, "launch of a kernel with three buffers and no groups",
      [&] { device.launch(*kernel, none); },
      [&] { d.runner.launch(d.handle, nullptr, kernel->handle(), &desc, nullptr, nullptr); });
  const float value = 1;
  compare(
      report, "copy_in of 4 bytes", [&] { buffers[0]->copy_in(&value, sizeof value); },
      [&] {
        d.allocator_api.copy_in(d.handle, nullptr, handles[0], 0, &value, sizeof value, nullptr);
      });
  compare(
      report, "synchronize", [&] { device.synchronize(); },
      [&] { d.device.synchronize(d.handle, nullptr); });
}

}  // namespace plugrad::bench
