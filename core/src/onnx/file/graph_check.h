// Checks of a model's graphs before anything runs.
#pragma once

#include "onnx/file/messages.h"

namespace plugrad::onnx {

/// Errors: User for names that nothing computes or that are given twice, functions that call
/// themselves, and nodes with attributes, inputs or outputs that their operators do not have.
void require_sound(const ModelMessage& model);

}  // namespace plugrad::onnx
