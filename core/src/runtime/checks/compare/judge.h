// Whether a kernel's results on one device agree with those of another.
#pragma once

#include <optional>

#include "runtime/checks/compare/differences.h"

namespace plugrad::runtime {

/// The first element of `got`, which a device with `caps` computed, beyond its bound from
/// `expected`, which `other` computed from the same `data`. `is_partial`: it ran a part of the groups, and only the
/// elements that it changed count. `more_runs`: how often `other` ran the kernel for this. Errors:
/// those of running the kernel.
std::optional<Difference> judge(const KernelLines& kernel, const LaunchData& data,
                                const pgr_device_caps& caps, Device& other, const HostMemory& got,
                                const HostMemory& expected, bool is_partial = false,
                                uint32_t* more_runs = nullptr);

}  // namespace plugrad::runtime
