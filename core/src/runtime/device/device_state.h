// The state of a Device: the plugin's handle and tables, facts, allocator, kernels.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/clock.h"
#include "runtime/checks/layers.h"
#include "runtime/device/device.h"
#include "runtime/device/device_calls.h"
#include "runtime/device/device_tables.h"
#include "runtime/device/kernel_cache.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/transfers.h"
#include "runtime/queue/device_trace.h"
#include "runtime/queue/launch_list.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

class Plugin;

// The tables are those of the outermost layer or, without layers, the plugin's.
struct DeviceState : DeviceTables {
  explicit DeviceState(std::string device_name) : name(std::move(device_name)), calls(name) {}

  const Plugin* plugin = nullptr;
  const std::string name;
  std::string plugin_name;
  DeviceCalls calls;
  std::uint32_t index = 0;
  DeviceInfo info;
  pgr_device_caps caps{};
  std::vector<pgr_tensor_core> tensor_cores;
  std::vector<std::string> claims;

  pgr_device* plugin_handle = nullptr;  // the plugin's own handle
  LayerStack layers;
  bool has_renderer = false, has_compiler = false;
  bool renders_by_component = false;  // by the SDK's renderer, which the manifest names
  bool has_graph = false, has_profile = false;
  bool is_asynchronous = false;  // has pgr.queue: launches and copies may return before they finish
  std::mutex queue_mutex;        // the device's in-order queue takes one call at a time
  Timeline timeline{*this};      // of that queue
  Transfers transfers{*this};
  DeviceTrace trace{*this};

  std::unique_ptr<Allocator> allocator;
  KernelCache kernels;
  std::once_flag identity_made;
  std::string identity;  // cache of Device::code_identity
  LiveList<Buffer> buffers;
  LiveList<Kernel> loaded;
  LiveList<LaunchList> lists;

  /// A call that works on the device's in-order queue: as check(), serialised.
  template <class F>
  void on_queue(const char* call, const F& f) {
    const std::lock_guard lock(queue_mutex);
    const Timeline::Work work(timeline);
    calls.check(call, f);
  }
  /// The same for a copy, which a trace records.
  struct CopyOfBytes {
    trace::Direction direction;
    std::uint64_t bytes;
  };
  template <class F>
  void on_queue(const char* call, CopyOfBytes copy, const F& f) {
    const std::lock_guard lock(queue_mutex);
    const Timeline::Work work(timeline);
    const std::uint64_t submit_ns = tracing() ? monotonic_ns() : 0;
    calls.check(call, f);
    if (submit_ns != 0)
      trace.copied(DeviceTrace::kMain, nullptr, copy.direction, copy.bytes, submit_ns);
  }

  /// Whether a layer must see every allocation and its end.
  bool keeps_nothing() const;
  /// Whether an abandoned call is still inside the plugin.
  bool is_hung() const;
  /// Destroys everything made of the device, in the order of the ABI, and closes it. Remaining
  /// handles are invalid.
  void shut_down() noexcept;

  ~DeviceState();
};

using DeviceStatePtr = std::unique_ptr<DeviceState, DeviceStateDelete>;

/// Computes the value of Device::code_identity.
std::string make_identity(DeviceState& state);

/// Opens the device and reads its facts. Errors: Device if the plugin reports an error or lacks a
/// part.
DeviceStatePtr make_device_state(const Plugin& plugin, std::uint32_t physical_index,
                                 std::uint32_t number, const PluginOptions& options,
                                 const LayerList& layers);

}  // namespace plugrad::runtime
