// Whether a network computes with half floats.
#pragma once

#include <string>

namespace plugrad::tools {

/// True if the file has inputs, initialisers, declared values or casts of type float16 or bfloat16,
/// also where its outputs are wider. Errors: those of onnx::Model::load.
bool computes_with_halves(const std::string& path);

}  // namespace plugrad::tools
