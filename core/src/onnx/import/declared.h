// The declared types and shapes of a model's inputs and outputs.
#pragma once

#include <vector>

#include "onnx/file/messages.h"
#include "plugrad/onnx.h"

namespace plugrad::onnx {

/// The inputs without those that a constant of the model gives.
std::vector<const ValueMessage*> declared_inputs(const ModelMessage& model);
/// The inputs that replace a constant where a call gives them.
std::vector<const ValueMessage*> defaulted_inputs(const ModelMessage& model);
/// The same as callers see them.
std::vector<ValueInfo> infos_of(const std::vector<const ValueMessage*>& inputs);
std::vector<ValueInfo> inputs_of(const ModelMessage& model);  // those of declared_inputs
std::vector<ValueInfo> outputs_of(const ModelMessage& model);

}  // namespace plugrad::onnx
