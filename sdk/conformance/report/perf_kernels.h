// The kernels that the perf level times, fitted to what a device says of itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/plugin/device.h"

namespace plugrad::conformance {

// How work is spread: lanes of a vector, work-items of a group, groups that run at once.
struct Spread {
  uint32_t lanes = 1, items = 1, groups = 1;
  bool fma = false;
};
Spread spread_of(const Device& device);

// A kernel and what one launch of it does.
struct TimedKernel {
  std::vector<std::byte> block;
  std::vector<uint64_t> buffer_bytes;  // by parameter
  uint64_t groups[2] = {1, 1};
  uint32_t items = 1;
  double operations = 0;  // on floats; a multiply-add counts as two
  double bytes = 0;       // moved to and from memory, each element once
};

// out[0] = 1
TimedKernel make_nothing_kernel();
// out[i] = a[i] + b[i] of about `count` elements.
TimedKernel make_add_kernel(const Spread& spread, uint64_t count);
// Chains of multiply-adds that do not wait for one another: what the device can compute at most.
TimedKernel make_chains_kernel(const Spread& spread, uint64_t steps);
// c = a b, of matrices with `size` rows and columns, a multiple of 64; each item keeps a few rows
// of the result in registers.
TimedKernel make_product_kernel(const Spread& spread, uint64_t size);

}  // namespace plugrad::conformance
