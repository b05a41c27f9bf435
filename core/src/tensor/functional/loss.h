// What losses share.
#pragma once

#include <string_view>

#include "plugrad/loss.h"
#include "tensor/compute_dtype.h"

namespace plugrad::tensor {

/// The loss of each sample (in f32 or f64) as `reduction` has it, in the dtype of the predictions.
Tensor reduced(const Tensor& loss, Reduction reduction, const Tensor& predictions);

void require_same(std::string_view function, const Tensor& x, const Tensor& target);

}  // namespace plugrad::tensor
