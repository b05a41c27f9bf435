// Inputs of a model from its declaration and the options --size and --input.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "plugrad/onnx.h"

namespace plugrad::tools {

using Names = std::map<std::string, std::string>;

/// What --size may name: sizes by name, and axes as "image.2".
std::vector<std::string> open_sizes(const std::vector<onnx::ValueInfo>& inputs);

/// The declared shape; sizes that the model leaves open are those of --size, else `otherwise` says.
/// Errors: UsageError for a size that is no number.
Shape shape_of(const onnx::ValueInfo& input, const Names& sizes, int64_t (*otherwise)(size_t axis));

/// Axes that a model leaves open, in tests: 1 for the first, which is the batch in most models, and
/// 64 for the others: strides of up to 64 divide it, and kernels stay small enough for REFERENCE.
inline int64_t open_axis_size(size_t axis) {
  return axis == 0 ? 1 : 64;
}

/// Inputs on the default device, without a kernel: `numbers` by input, else random floats from 0 to
/// 1 and integers 0 or 1, the same for a seed on every device. Open sizes are those of --size, else
/// open_axis_size(). Errors: UsageError; User for inputs that are no tensors.
std::vector<Tensor> seeded_inputs(const onnx::Model& model, const Names& sizes,
                                  const Names& numbers, uint64_t seed);

/// The number, if the text is one.
std::optional<double> parse_number(const std::string& text);

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values);

}  // namespace plugrad::tools
