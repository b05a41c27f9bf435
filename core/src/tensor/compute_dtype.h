// The compute dtype: functions of several steps compute f16, bf16 and integers in f32 and round the
// result once.
#pragma once

#include <limits>

#include "tensor/record.h"

namespace plugrad::tensor {

/// Floats of 16 bits and less, whose sums and products need more.
inline bool is_half(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4;
}

/// -inf, or the lowest integer.
inline Tensor lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  if (is_unsigned(dtype)) return 0;
  return std::numeric_limits<int64_t>::min() >> (64 - 8 * size_of(dtype));
}

/// Dtype in which steps on `dtype` are computed.
inline DType compute_dtype(DType dtype) {
  return dtype == DType::F64 ? DType::F64 : DType::F32;
}

inline Tensor to_compute_dtype(const Tensor& x) {
  return x.cast(compute_dtype(x.dtype()));
}

/// Casts the result `y` to the dtype that a real function of `x` returns.
inline Tensor to_result_dtype(const Tensor& y, const Tensor& x) {
  return y.cast(real_dtype(x.dtype()));
}

/// Applies `function` to x in its compute dtype; casts back if x is a float.
template <class Function>
Tensor in_compute_dtype(const Tensor& x, Function function) {
  const DType own = x.dtype();
  if (compute_dtype(own) == own) return function(x);
  const Tensor result = function(x.cast(DType::F32));
  return is_float(own) ? result.cast(own) : result;
}

}  // namespace plugrad::tensor
