// What functions of real analysis are composed of beside the ops.
#pragma once

#include <initializer_list>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Whether a float has its sign bit set, as -0 has.
Tensor sign_bit(const Tensor& x);

/// |x| with gradient 1 at 0, so that functions built on it keep their slope there.
Tensor magnitude(const Tensor& x);

/// The polynomial with these coefficients, highest power first (Horner).
Tensor polynomial(const Tensor& x, std::initializer_list<double> coefficients);

/// `value`, a function of x element by element, with `slope` as its derivative: gradients then take
/// nothing of the steps that the value is computed in. `slope` may be differentiated again.
Tensor with_slope(const Tensor& value, const Tensor& x, const Tensor& slope);

/// `value`, which does not change with `x`: gradients to x are 0, and not missing.
Tensor constant_in(const Tensor& x, const Tensor& value);

}  // namespace plugrad::tensor
