#include "models/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>

#include "command.h"

namespace plugrad::tools {
namespace {

int64_t number_of(const std::string& name, const std::string& text) {
  size_t end = 0;
  int64_t number = -1;
  try {
    number = std::stoll(text, &end);
  } catch (const std::exception&) {
  }
  if (end != text.size() || number < 0)
    throw UsageError(fmt::format("--size {}={} is no size", name, text));
  return number;
}

// An axis of any size by its place: "image.2".
std::string axis_name(const onnx::ValueInfo& input, size_t axis) {
  return fmt::format("{}.{}", input.name, axis);
}

}  // namespace

std::vector<std::string> open_sizes(const std::vector<onnx::ValueInfo>& inputs) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : inputs) {
    const auto shape = input.shape.value_or(std::vector<onnx::Dimension>());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      if (shape[axis].size) continue;
      if (!shape[axis].name.empty() && std::ranges::find(names, shape[axis].name) == names.end())
        names.push_back(shape[axis].name);
      names.push_back(axis_name(input, axis));
    }
  }
  return names;
}

Shape shape_of(const onnx::ValueInfo& input, const Names& sizes,
               int64_t (*otherwise)(size_t axis)) {
  Shape shape;
  for (const onnx::Dimension& dim : input.shape.value_or(std::vector<onnx::Dimension>())) {
    auto given = sizes.find(axis_name(input, shape.size()));
    if (given == sizes.end()) given = sizes.find(dim.name);
    shape.push_back(dim.size               ? *dim.size
                    : given != sizes.end() ? number_of(given->first, given->second)
                                           : otherwise(shape.size()));
  }
  return shape;
}

void require_names(const char* option, const Names& given, const std::vector<std::string>& known) {
  for (const auto& [name, value] : given)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(fmt::format("--{} {}: the model has {}{}", option, name,
                                   fmt::join(known, ", "), did_you_mean(name, known)));
}

std::optional<double> parse_number(const std::string& text) {
  size_t end = 0;
  try {
    const double number = std::stod(text, &end);
    if (end == text.size()) return number;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace plugrad::tools
