// Compares the memory that one launch left on two devices.
#pragma once

#include <optional>
#include <span>

#include "runtime/checks/compare/launch_data.h"

namespace plugrad::runtime {

struct Difference {
  std::size_t region = 0;
  uint32_t argument = 0;  // first buffer argument of the region
  uint32_t dtype = PGR_DTYPE_VOID;
  uint64_t index = 0;              // of the first element that differs
  uint64_t got = 0, expected = 0;  // bits
  uint64_t ulps = 0;
  double bound = 0;                  // allowed distance; 0: equal bits
  uint64_t count = 0, elements = 0;  // how many differ, of how many
};

/// Rules besides equal bits.
struct Tolerance {
  bool any_zero = false;    // zeros of either sign are equal: MAX may return either
  bool flushes = false;     // denormals may be zeros
  bool is_rounded = false;  // `variants` measure the bound
  /// Only elements that the reference changed count: it ran a part of the groups.
  bool is_partial = false;
};

/// The first element beyond its bound. `variants`: memory after the launches of with_errors().
std::optional<Difference> first_difference(const KernelLines& kernel, const LaunchData& data,
                                           const HostMemory& got, const HostMemory& expected,
                                           std::span<const HostMemory> variants,
                                           const Tolerance& tolerance);

}  // namespace plugrad::runtime
