// Compares a model's outputs with those of ONNX Runtime.
#pragma once

#include <string>
#include <vector>

#include "plugrad/onnx.h"

namespace plugrad::tools {

struct Comparison {
  std::string version;              ///< of ONNX Runtime
  std::vector<double> differences;  ///< of each output, relative to its largest element
  /// Of each output: floats differ by at most 1e-4 of the largest element and 1e-6 (half floats by
  /// 4e-3 and 1e-3), integers are equal.
  std::vector<bool> agrees;
};

/// Runs the file in the onnxruntime of the python3 in PATH, on the same inputs. Errors: User if
/// that is not installed or refuses the model, or if shapes differ.
Comparison compare_with_onnx_runtime(const std::string& path, const onnx::Model& model,
                                     const std::vector<Tensor>& inputs,
                                     const std::vector<Tensor>& outputs);

}  // namespace plugrad::tools
