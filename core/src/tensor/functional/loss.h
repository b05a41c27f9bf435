// Helpers of the losses.
#pragma once

#include <string_view>

#include "plugrad/loss.h"
#include "tensor/compute_dtype.h"

namespace plugrad::tensor {

/// Reduces the losses of the samples (f32 or f64) and casts to the dtype of the predictions.
Tensor reduced(const Tensor& loss, Reduction reduction, const Tensor& predictions);

void require_same(std::string_view function, const Tensor& x, const Tensor& target);

}  // namespace plugrad::tensor
