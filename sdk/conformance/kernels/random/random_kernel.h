// Generates random kernels from all claims of a device, and decides which kernels can be compared
// with the interpreter.
#pragma once

#include <map>

#include "conformance/kernels/elements.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {

// Deterministic in the caps and the random numbers.
Bytes make_random_kernel(const pgr_device_caps& caps, Random& random);

// Tolerance of each written buffer against the interpreter, in ulp.
struct Comparison {
  std::vector<double> tolerance;  // per buffer parameter; 0: bitwise equal
  // Reason that results may legitimately differ; empty: comparable.
  std::string obstacle;
};
Comparison make_comparison(const sdk::IrView& ir, const pgr_device_caps& caps);

// True if the op on the dtype is bitwise equal on the device and in the interpreter.
bool is_reproducible(uint32_t op, uint32_t dtype, const pgr_device_caps& caps);

}  // namespace plugrad::conformance
