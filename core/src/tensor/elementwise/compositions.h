// Helpers for composing functions of real analysis.
#pragma once

#include <initializer_list>

#include "tensor/elementwise/formula.h"

namespace plugrad::tensor {

/// Whether the sign bit of a float is set; true for -0.
Tensor sign_bit(const Tensor& x);

/// |x| with gradient 1 at 0, so that functions built on it keep their slope there.
Formula magnitude(const Formula& x);

/// The polynomial with these coefficients, highest power first (Horner).
Formula polynomial(const Formula& x, std::initializer_list<double> coefficients);

/// `value`, an elementwise function of x, with the derivative `slope`: gradients do not pass
/// through the steps that compute the value. `slope` may be differentiated again.
Formula with_slope(const Formula& value, const Formula& x, const Formula& slope);

Formula log1p(const Formula& x);
Formula expm1(const Formula& x);
Formula tanh(const Formula& x);

/// erf within 5 units in the last place in f32, for half the time; x has its compute dtype.
Formula quick_erf(const Formula& x);

/// `value`, which does not depend on `x`: the gradient to x is 0, not missing.
Formula constant_in(const Formula& x, const Formula& value);

}  // namespace plugrad::tensor
