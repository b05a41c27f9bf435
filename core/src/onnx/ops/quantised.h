// Products with quantised weights.
#pragma once

#include "plugrad/tensor.h"

namespace plugrad::onnx {

/// x @ weights as floats, where x (…, n) is quantised to 8 bits in the range of its elements.
/// `weights`: integers (n, m). `scale`: one number or one each column. `zero`: alike, or undefined.
Tensor dynamic_product(const Tensor& x, const Tensor& weights, const Tensor& scale,
                       const Tensor& zero);

}  // namespace plugrad::onnx
