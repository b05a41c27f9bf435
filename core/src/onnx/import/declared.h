// What a model declares about its inputs and outputs.
#pragma once

#include <vector>

#include "onnx/file/messages.h"
#include "plugrad/onnx.h"

namespace plugrad::onnx {

/// Without those that a constant of the model gives.
std::vector<ValueInfo> inputs_of(const ModelMessage& model);
std::vector<ValueInfo> outputs_of(const ModelMessage& model);

}  // namespace plugrad::onnx
