/// Elementwise operators of tensors, with the broadcasting and promotion of tensor.h.
#pragma once

#include "plugrad/export.h"

namespace plugrad {

class Tensor;

PLUGRAD_API Tensor operator+(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator-(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator*(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator/(const Tensor& a, const Tensor& b);  ///< floats; integers as f32
PLUGRAD_API Tensor operator%(const Tensor& a, const Tensor& b);  ///< a - b * floor(a / b)
// Bitwise for integers, logical for bool.
PLUGRAD_API Tensor operator&(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator|(const Tensor& a, const Tensor& b);
PLUGRAD_API Tensor operator^(const Tensor& a, const Tensor& b);
// The result has the dtype of `a`; >> of signed integers is arithmetic.
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
