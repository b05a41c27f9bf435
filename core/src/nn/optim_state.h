// Facts of an optimiser's state.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad::optim {

/// Dtype of a parameter's state: squares of halves would underflow.
inline DType state_dtype(const Tensor& parameter) {
  return parameter.dtype() == DType::F64 ? DType::F64 : DType::F32;
}

}  // namespace plugrad::optim
