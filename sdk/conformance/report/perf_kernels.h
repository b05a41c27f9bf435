// The kernels of the perf level, fitted to a device's capabilities.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "conformance/plugin/device.h"

namespace plugrad::conformance {

// Distribution of work: lanes per vector, work-items per group, concurrent groups.
struct Spread {
  uint32_t lanes = 1, items = 1, groups = 1;
  bool fma = false;
};
Spread spread_of(const Device& device);

// A kernel and the work of one launch.
struct TimedKernel {
  std::vector<std::byte> block;
  std::vector<uint64_t> buffer_bytes;  // per parameter
  uint64_t groups[2] = {1, 1};
  uint32_t items = 1;
  double operations = 0;  // float operations; a multiply-add counts as two
  double bytes = 0;       // memory traffic, each element counted once
};

// out[0] = 1
TimedKernel make_nothing_kernel();
// out[i] = a[i] + b[i] of about `count` elements.
TimedKernel make_add_kernel(const Spread& spread, uint64_t count);
// Independent chains of multiply-adds: measures peak arithmetic throughput.
TimedKernel make_chains_kernel(const Spread& spread, uint64_t steps);
// c = a b, for matrices of `size` rows and columns, a multiple of 64; each work-item keeps a few
// rows of the result in registers.
TimedKernel make_product_kernel(const Spread& spread, uint64_t size);

}  // namespace plugrad::conformance
