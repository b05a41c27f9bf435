// Functions of several steps are computed in f32 for halves, and rounded once.
#pragma once

#include "tensor/record.h"

namespace plugrad::tensor {

/// x as f64 or f32.
inline Tensor widened(const Tensor& x) {
  return x.cast(x.dtype() == DType::F64 ? DType::F64 : DType::F32);
}

/// `y` in the dtype that a function of real analysis of `x` has.
inline Tensor narrowed(const Tensor& y, const Tensor& x) {
  return y.cast(real_dtype(x.dtype()));
}

}  // namespace plugrad::tensor
