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

/// The names that --size accepts: those of sizes, and axes such as "image.2".
std::vector<std::string> open_sizes(const std::vector<onnx::ValueInfo>& inputs);

/// The declared shape. Sizes that the model leaves open are those of --size, else 1 for the first
/// axis, which is the batch in most models, and 64 for the others: strides of up to 64 divide it, and
/// kernels stay small enough for REFERENCE. Errors: UsageError for a size that is no number.
Shape shape_of(const onnx::ValueInfo& input, const Names& sizes);

/// The bounds of sizes from texts such as "1..512". Errors: UsageError for other texts.
onnx::SizeBounds bounds_of(const Names& texts);

/// Inputs on the default device, made without a kernel: for each input the file NAME.npy or the
/// number that `given` has, else random floats from 0 to 1 and integers 0 or 1, the same for a seed
/// on every device. Errors: UsageError; User for inputs that are no tensors.
std::vector<Tensor> made_inputs(const onnx::Model& model, const Names& sizes, const Names& given,
                                uint64_t seed);

/// Errors: UsageError for a name of the option --`option` that is not `known`.
void require_names(const char* option, const Names& given, const std::vector<std::string>& known);

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values);

}  // namespace plugrad::tools
