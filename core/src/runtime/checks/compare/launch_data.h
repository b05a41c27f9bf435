// A launch with the contents of its memory, which can be run on any device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plugrad/plugin_api/device.h"
#include "runtime/checks/compare/kernel_lines.h"
#include "runtime/device/device.h"

namespace plugrad::runtime {

using HostMemory = std::vector<std::vector<std::byte>>;  // by region

struct LaunchData {
  HostMemory regions;                  // the memory before the launch
  std::vector<std::size_t> region_of;  // by buffer argument; equal buffers share a region
  std::vector<uint64_t> scalars;
  std::array<uint64_t, 3> group_count{1, 1, 1};
  std::array<uint32_t, 3> local_size{1, 1, 1};

  uint64_t bytes() const;
  /// The argument of a buffer parameter: parameters count scalars too.
  static std::vector<uint32_t> buffer_params(const KernelLines& kernel);
};

/// The first op or size of the kernel that these capabilities lack, e.g. "EXP2 f32"; empty if it
/// can run the kernel. Tensor cores must be those of `made_for`.
std::string lacking(const KernelLines& kernel, const pgr_device_caps& caps,
                    const pgr_device_caps& made_for);

/// The memory after the launch of `kernel` on `device`. Errors: those of compile, launch and copies.
HostMemory run_on(Device& device, const Kernel& kernel, const LaunchData& data);
HostMemory run_on(Device& device, const KernelLines& kernel, const LaunchData& data, bool contract);

/// Instructions that a launch executes, counting those of loops with unknown bounds once.
double executed_lines(const KernelLines& kernel, const std::array<uint64_t, 3>& group_count);

}  // namespace plugrad::runtime
