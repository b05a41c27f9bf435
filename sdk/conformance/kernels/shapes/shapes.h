// Groups of shape tests, one file each, and the error bound of sums.
#pragma once

#include "conformance/kernels/elements.h"

namespace plugrad::conformance {

void add_reduction_tests(Tests& tests);
void add_product_tests(Tests& tests);  // matmul and convolution
void add_view_tests(Tests& tests);
void add_large_tests(Tests& tests);  // 64-bit indices, buffers past 2^31 elements

// A sum of products: the exact value, and the sum of magnitudes.
class ExactDot {
 public:
  explicit ExactDot(uint32_t dtype);
  void add(uint64_t a, uint64_t b);
  // Error of `got` relative to the bound of n roundings, n·u·Σ|a·b|. Above 1 is wrong.
  double error_over_bound(uint64_t got, size_t n) const;
  // Signed error in units of u·Σ|a·b|.
  double signed_error(uint64_t got) const;

 private:
  double distance(uint64_t got) const;
  uint32_t dtype_;
  Real sum_, magnitude_;
};

}  // namespace plugrad::conformance
