// The functions of the accuracy campaign, with the bounds that docs/accuracy.md promises.
#pragma once

#include <span>
#include <string_view>

#include "plugrad/tensor.h"

namespace plugrad::accuracy {

/// A function of one number, or with `exact_pow` of two. The exact values are libm's in a wider
/// type: of f32 in double, of f64 in the x87 format with its 11 further bits.
struct Function {
  std::string_view name;
  double bound_f32, bound_f64;  ///< in ulp of the exact value
  Tensor (*run)(const Tensor& x, const Tensor& y);
  double (*exact_f32)(double x, double y);
  long double (*exact_f64)(long double x, long double y);
  bool has_two_operands = false;

  double bound(DType dtype) const { return dtype == DType::F32 ? bound_f32 : bound_f64; }
};

std::span<const Function> functions();

}  // namespace plugrad::accuracy
