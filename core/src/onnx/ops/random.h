// Random numbers of operators.
#pragma once

#include "onnx/import/call.h"

namespace plugrad::onnx {

/// Uniform numbers of [0, 1). With the attribute seed they are the same at each call, those of the
/// host's own generator: ONNX does not say how a seed determines them.
Tensor uniform_numbers(Call& call, const Shape& shape, DType dtype);

}  // namespace plugrad::onnx
