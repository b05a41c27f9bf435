// Helpers for composing functions of real analysis.
#pragma once

#include <initializer_list>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Whether the sign bit of a float is set; true for -0.
Tensor sign_bit(const Tensor& x);

/// |x| with gradient 1 at 0, so that functions built on it keep their slope there.
Tensor magnitude(const Tensor& x);

/// The polynomial with these coefficients, highest power first (Horner).
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients);

/// `value`, an elementwise function of x, with the derivative `slope`: gradients do not pass
/// through the steps that compute the value. `slope` may be differentiated again.
Tensor with_slope(const Tensor& value, const Tensor& x, const Tensor& slope);

/// erf within 5 units in the last place in f32, for half the time; x has its compute dtype.
Tensor quick_erf(const Tensor& x);

/// `value`, which does not depend on `x`: the gradient to x is 0, not missing.
Tensor constant_in(const Tensor& x, const Tensor& value);

}  // namespace plugrad::tensor
