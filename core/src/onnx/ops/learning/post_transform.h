// The last step of the models of ai.onnx.ml.
#pragma once

#include <string_view>

#include "onnx/import/call.h"

namespace plugrad::onnx {

/// Numbers of an attribute as f32. Shape: (count,).
Tensor row_of(const std::vector<double>& numbers);

/// "NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO" or "PROBIT", of rows of scores.
Tensor post_transformed(Call& call, std::string_view transform, const Tensor& scores);

/// The labels of a classifier: that of each row's index.
Value labels_of(Call& call, const Tensor& index, std::string_view integers);

}  // namespace plugrad::onnx
