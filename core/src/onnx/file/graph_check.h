// Checks of a model's graphs before anything runs.
#pragma once

#include "onnx/file/messages.h"

namespace plugrad::onnx {

/// Nodes that one call may run, with those of functions and of the steps of loops: at some 10 us for
/// a node, the recording ends within 10 s (chosen, not measured).
constexpr std::int64_t kMostNodes = 1'000'000;

/// Errors: User for names that nothing computes or that are given twice, functions that call
/// themselves or that have more than kMostNodes nodes in the place of their calls, and nodes with
/// attributes, inputs or outputs that their operators do not have.
void require_sound(const ModelMessage& model);

}  // namespace plugrad::onnx
