// What a Device holds: the plugin's handle and tables, facts, allocator, kernels.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/kernel_cache.h"
#include "runtime/tables.h"

namespace plugrad::runtime {

class Plugin;

struct DeviceState {
  const Plugin* plugin = nullptr;
  pgr_device* handle = nullptr;
  std::string name, plugin_name;
  std::uint32_t index = 0;
  DeviceInfo info;
  pgr_device_caps caps{};
  std::vector<pgr_tensor_core> tensor_cores;
  std::vector<std::string> claims;

  pgr_device_api device{};
  pgr_allocator_api allocator_api{};
  pgr_runner_api runner{};
  pgr_renderer_api renderer{};
  pgr_compiler_api compiler{};
  bool has_renderer = false, has_compiler = false;
  bool renders_by_component = false;  // by the SDK's renderer, which its manifest names

  std::unique_ptr<Allocator> allocator;
  KernelCache kernels;
  unsigned born_after_forks = 0;

  /// Errors: User in a process that was forked after the device was opened.
  void require_usable(const char* call) const {
    if (born_after_forks != fork_count) [[unlikely]]
      refuse_after_fork(call);
  }
  [[noreturn]] void refuse_after_fork(const char* call) const;
  /// Forks between the process that loaded this code and this one.
  static unsigned fork_count;

  ~DeviceState();
};

/// Opens the device and reads what it is. Errors: Device, for what the plugin reports or lacks.
std::unique_ptr<DeviceState> make_device_state(const Plugin& plugin, std::uint32_t physical_index,
                                               std::uint32_t number, const PluginOptions& options);

}  // namespace plugrad::runtime
