// Converts inputs and outputs of a call to and from values of a recording.
#pragma once

#include <string>
#include <string_view>

#include "onnx/file/messages.h"
#include "onnx/import/value.h"
#include "plugrad/onnx.h"

namespace plugrad::onnx {

/// Why the data is not of the type, as "is i32" or "has the shape (2, 3)"; empty if it is.
std::string mismatch(const Data& data, const TypeMessage& type);

/// The value of data that is of the type, with its tensors on the device. Errors: User for
/// tensors on a mesh.
Value value_of(const Data& data, const TypeMessage& type, std::string_view device);
Data data_of(const Value& value);

}  // namespace plugrad::onnx
