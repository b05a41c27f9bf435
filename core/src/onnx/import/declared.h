// The declared types and shapes of a model's inputs and outputs.
#pragma once

#include <vector>

#include "onnx/file/messages.h"
#include "onnx/import/value.h"
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

/// Errors: User if the value is of another type than the output declares.
void require_declared(const Value& value, const ValueMessage& output);

}  // namespace plugrad::onnx
