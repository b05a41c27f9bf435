// Compares a model's outputs with those of ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "models/outputs.h"
#include "plugrad/onnx.h"

namespace plugrad::tools {

struct Comparison {
  std::string version;                    ///< of ONNX Runtime
  std::vector<OutputDifference> outputs;  ///< of each output
};

/// Runs the file in the onnxruntime of the python3 in PATH, on the same inputs. Errors: User if
/// that is not installed or refuses the model, or if shapes differ.
Comparison compare_with_onnx_runtime(const std::string& path, const onnx::Model& model,
                                     const std::vector<Tensor>& inputs,
                                     const std::vector<Tensor>& outputs);

}  // namespace plugrad::tools
