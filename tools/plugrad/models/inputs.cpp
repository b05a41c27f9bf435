#include "models/inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <exception>
#include <random>

#include "base/check.h"
#include "command.h"
#include "ir/facts.h"
#include "plugrad/numpy.h"
#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"

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

// The elements in the dtype's storage form.
Tensor tensor_of(const std::vector<double>& values, const Shape& shape, DType dtype) {
  const auto code = static_cast<uint32_t>(dtype);
  const size_t width = runtime::dtype_bytes(code);
  std::vector<std::byte> bytes(values.size() * width);
  for (size_t i = 0; i < values.size(); ++i) {
    const uint64_t bits = is_float(dtype) ? runtime::bits_of(code, values[i])
                                          : static_cast<uint64_t>(static_cast<int64_t>(values[i]));
    std::memcpy(bytes.data() + i * width, &bits, width);  // little-endian
  }
  return Tensor::from_bytes(bytes, shape, dtype);
}

// The number, if the text is one.
std::optional<double> parse_number(const std::string& text) {
  size_t end = 0;
  try {
    const double number = std::stod(text, &end);
    if (end == text.size()) return number;
  } catch (const std::exception&) {
  }
  return std::nullopt;
}

Tensor made_input(const onnx::ValueInfo& input, const Names& sizes, std::optional<double> number,
                  std::mt19937_64& random) {
  require(input.dtype.has_value(), "[models] input \"{}\" is a {}; only tensors can be made",
          input.name, input.type);
  const Shape shape = shape_of(input, sizes);
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& value : values)
    value = number                   ? *number
            : is_float(*input.dtype) ? 0x1p-24 * static_cast<double>(random() >> 40)
                                     : static_cast<double>(random() >> 63);
  return tensor_of(values, shape, *input.dtype);
}

}  // namespace

std::vector<Tensor> made_inputs(const onnx::Model& model, const Names& sizes, const Names& given,
                                uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> inputs;
  for (const onnx::ValueInfo& input : model.inputs()) {
    const auto at = given.find(input.name);
    const auto number = at == given.end() ? std::nullopt : parse_number(at->second);
    const bool is_file = at != given.end() && !number;
    inputs.push_back(is_file ? load_npy(at->second) : made_input(input, sizes, number, random));
  }
  return inputs;
}

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

Shape shape_of(const onnx::ValueInfo& input, const Names& sizes) {
  Shape shape;
  for (const onnx::Dimension& dim : input.shape.value_or(std::vector<onnx::Dimension>())) {
    auto given = sizes.find(axis_name(input, shape.size()));
    if (given == sizes.end()) given = sizes.find(dim.name);
    shape.push_back(dim.size               ? *dim.size
                    : given != sizes.end() ? number_of(given->first, given->second)
                    : shape.empty()        ? 1
                                           : 64);
  }
  return shape;
}

onnx::SizeBounds bounds_of(const Names& texts) {
  onnx::SizeBounds bounds;
  for (const auto& [name, text] : texts) {
    int64_t low = 0, high = 0;
    const char* const end = text.data() + text.size();
    const auto [dots, error] = std::from_chars(text.data(), end, low);
    const bool has_dots = error == std::errc() && std::string_view(dots, end).starts_with("..");
    const auto last = has_dots ? std::from_chars(dots + 2, end, high) : std::from_chars_result{};
    if (!has_dots || last.ec != std::errc() || last.ptr != end)
      throw UsageError(
          fmt::format("--bounds {}={} are no bounds, which look like 1..512", name, text));
    bounds[name] = {low, high};
  }
  return bounds;
}

void require_names(const char* option, const Names& given, const std::vector<std::string>& known) {
  for (const auto& [name, value] : given)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(fmt::format("--{} {}: the model has {}{}", option, name,
                                   fmt::join(known, ", "), did_you_mean(name, known)));
}

std::vector<std::string> names_of(const std::vector<onnx::ValueInfo>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& value : values) names.push_back(value.name);
  return names;
}

}  // namespace plugrad::tools
