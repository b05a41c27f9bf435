// Functions of several steps compute in f32 where their operand is smaller, and round once.
// Integers are computed in f32 too.
#pragma once

#include "tensor/record.h"

namespace plugrad::tensor {

/// Dtype in which steps on `dtype` are computed.
inline DType compute_dtype(DType dtype) {
  return dtype == DType::F64 ? DType::F64 : DType::F32;
}

inline Tensor to_compute_dtype(const Tensor& x) {
  return x.cast(compute_dtype(x.dtype()));
}

/// `y` in the dtype that a function of real analysis of `x` has.
inline Tensor to_result_dtype(const Tensor& y, const Tensor& x) {
  return y.cast(real_dtype(x.dtype()));
}

/// function(x in its compute dtype), in x's own dtype where that is a float.
template <class Function>
Tensor in_compute_dtype(const Tensor& x, Function function) {
  const DType own = x.dtype();
  if (compute_dtype(own) == own) return function(x);
  const Tensor result = function(x.cast(DType::F32));
  return is_float(own) ? result.cast(own) : result;
}

}  // namespace plugrad::tensor
