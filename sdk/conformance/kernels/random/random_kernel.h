// Random kernels of everything that a device claims, and which kernels of any origin can be
// compared with the interpreter at all.
#pragma once

#include <map>

#include "conformance/kernels/elements.h"
#include "plugrad/sdk/ir_view.h"

namespace plugrad::conformance {

// The same caps and the same random numbers give the same block.
Bytes make_random_kernel(const pgr_device_caps& caps, Random& random);

// How far each written buffer of a kernel may be from what the interpreter gives, in ulp.
struct Comparison {
  std::vector<double> tolerance;  // by buffer parameter; 0: the same bits
  // Why the kernel cannot be compared: a device may rightly differ. Empty: it can.
  std::string obstacle;
};
Comparison make_comparison(const sdk::IrView& ir, const pgr_device_caps& caps);

// Whether results of the op on the dtype are the same bits on the device as by the interpreter.
bool is_reproducible(uint32_t op, uint32_t dtype, const pgr_device_caps& caps);

}  // namespace plugrad::conformance
