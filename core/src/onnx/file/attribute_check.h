// Checks of a node's attributes: names, types, ranges and words.
#pragma once

#include "onnx/file/messages.h"
#include "onnx/file/schemas.h"

namespace plugrad::onnx {

/// Errors: User, with the node's name, for an attribute that is given twice, that the operator does
/// not have or that is missing, and for one whose type or value the operator does not take. Values
/// of references to attributes of a function's call are not known.
void require_attributes(const NodeMessage& node, const OperatorSchema& schema);

/// Errors: User for an attribute that the node gives twice.
void require_distinct_attributes(const NodeMessage& node);

}  // namespace plugrad::onnx
