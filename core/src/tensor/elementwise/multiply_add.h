// Products and sums in one operation.
#pragma once

#include "base/internal.h"
#include "plugrad/tensor.h"

namespace plugrad::tensor {

/// x * y + z, rounded once. Shape: of the operands, broadcast. Dtype: of the operands, floats.
PLUGRAD_INTERNAL Tensor multiply_add(const Tensor& x, const Tensor& y, const Tensor& z);

}  // namespace plugrad::tensor
