/// Operators of tensors, elementwise; they broadcast and promote as the methods of tensor.h do.
#pragma once

#include "plugrad/export.h"

namespace plugrad {

class Tensor;

PLUGRAD_API Tensor operator+(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator-(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator*(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator/(const Tensor& a, const Tensor& b);  ///< floats; integers as f32
PLUGRAD_API Tensor operator%(const Tensor& a, const Tensor& b);  ///< a - b * floor(a / b)
// Bits of integers, logic of bool.
PLUGRAD_API Tensor operator&(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator|(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator^(const Tensor& a, const Tensor& b);
// Shifts have the dtype of `a`; >> of signed integers keeps the sign.
PLUGRAD_API Tensor operator<<(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>>(const Tensor& a, const Tensor& b);
// Comparisons give bool, elementwise.
PLUGRAD_API Tensor operator==(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator!=(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator<(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator<=(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator>=(const Tensor& a, const Tensor& b);

}  // namespace plugrad
