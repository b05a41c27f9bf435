// Compositions of many steps round once: what is smaller than f32 is computed in f32, and the
// result is rounded to the dtype it came from. Integers are computed and stay in f32.
#pragma once

#include <initializer_list>

#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// Dtype in which steps on `dtype` are computed.
inline DType wide_dtype(DType dtype) {
  return dtype == DType::F64 ? DType::F64 : DType::F32;
}

/// function(x in the wide dtype), in x's own dtype where that is a float.
template <class Function>
Tensor widened(const Tensor& x, Function function) {
  const DType own = x.dtype();
  if (wide_dtype(own) == own) return function(x);
  const Tensor result = function(x.cast(DType::F32));
  return is_float(own) ? result.cast(own) : result;
}

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
