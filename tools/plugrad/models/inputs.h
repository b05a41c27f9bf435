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

inline int64_t one_element(size_t) {
  return 1;
}

/// The declared shape; sizes that the model leaves open are those of --size, else `otherwise` says.
/// Errors: UsageError for a size that is no number.
Shape shape_of(const onnx::ValueInfo& input, const Names& sizes,
               int64_t (*otherwise)(size_t axis) = one_element);

/// Errors: UsageError for a name of the option --`option` that is not `known`.
void require_names(const char* option, const Names& given, const std::vector<std::string>& known);

/// The number, if the text is one.
std::optional<double> parse_number(const std::string& text);

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values);

}  // namespace plugrad::tools
