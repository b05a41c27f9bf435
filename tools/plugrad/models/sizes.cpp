#include "models/sizes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <exception>

#include "base/check.h"
#include "command.h"

namespace plugrad::tools {
namespace {

constexpr int64_t kFirstAxis = 1, kOtherAxes = 64;

int64_t number_of(const std::string& name, const std::string& text) {
  int64_t number = -1;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number < 0)
    throw UsageError(fmt::format("--size {}={} is no size", name, text));
  return number;
}

// An axis of any size by its place: "image.2".
std::string axis_name(const onnx::ValueInfo& input, size_t axis) {
  return fmt::format("{}.{}", input.name, axis);
}

std::vector<onnx::Dimension> axes_of(const onnx::ValueInfo& input) {
  return input.shape.value_or(std::vector<onnx::Dimension>());
}

// The size that is given for an axis; the axis's own name comes first.
Names::const_iterator given_for(const onnx::ValueInfo& input, size_t axis, const std::string& name,
                                const Names& sizes) {
  const auto given = sizes.find(axis_name(input, axis));
  return given != sizes.end() ? given : sizes.find(name);
}

void require_memory(const onnx::ValueInfo& input, const Shape& shape) {
  double bytes = static_cast<double>(size_of(input.dtype.value_or(DType::F32)));
  for (const int64_t size : shape) bytes *= static_cast<double>(size);
  const double memory =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  require(bytes <= memory,
          "[models] input \"{}\" of shape {} takes {:.3g} GB; this machine has {:.3g} GB of memory",
          input.name, to_string(shape), bytes * 1e-9, memory * 1e-9);
}

}  // namespace

std::vector<std::string> open_sizes(const std::vector<onnx::ValueInfo>& inputs) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : inputs) {
    const auto axes = axes_of(input);
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].size) continue;
      if (!axes[axis].name.empty() && std::ranges::find(names, axes[axis].name) == names.end())
        names.push_back(axes[axis].name);
      names.push_back(axis_name(input, axis));
    }
  }
  return names;
}

Shape shape_of(const onnx::ValueInfo& input, const Names& sizes) {
  Shape shape;
  for (const onnx::Dimension& dim : axes_of(input)) {
    const auto given = given_for(input, shape.size(), dim.name, sizes);
    ensure(dim.size || given != sizes.end(), "axis {} of input {} has no size", shape.size(),
           input.name);
    shape.push_back(dim.size ? *dim.size : number_of(given->first, given->second));
  }
  require_memory(input, shape);
  return shape;
}

Names sizes_with(const std::vector<onnx::ValueInfo>& inputs, const Names& sizes,
                 const NamedTensors& given) {
  Names all = sizes;
  for (const onnx::ValueInfo& input : inputs) {
    const auto tensor = given.find(input.name);
    const auto axes = axes_of(input);
    if (tensor == given.end() || tensor->second.ndim() != std::ssize(axes)) continue;
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (axes[axis].size) continue;
      const int64_t size = tensor->second.size(static_cast<int64_t>(axis));
      const auto said = given_for(input, axis, axes[axis].name, sizes);
      if (said != sizes.end() && number_of(said->first, said->second) != size)
        throw UsageError(fmt::format("--size {}={}, but --input {} has {} in axis {}", said->first,
                                     said->second, input.name, size, axis));
      if (!axes[axis].name.empty()) all.emplace(axes[axis].name, fmt::to_string(size));
    }
  }
  return all;
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
    if (low < 0 || low > high || high < 2 || high > INT32_MAX)
      throw UsageError(
          fmt::format("--bounds {}={}: the least is from 0 to the largest, and the "
                      "largest from 2 to {}",
                      name, text, INT32_MAX));
    bounds[name] = {low, high};
  }
  return bounds;
}

std::string assume_sizes(const std::vector<onnx::ValueInfo>& inputs, const NamedTensors& given,
                         Names& sizes) {
  std::vector<std::string> assumed;
  for (const onnx::ValueInfo& input : inputs) {
    if (given.contains(input.name)) continue;
    const auto axes = axes_of(input);
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      const std::string& name = axes[axis].name;
      if (axes[axis].size || given_for(input, axis, name, sizes) != sizes.end()) continue;
      const auto added = sizes.emplace(name.empty() ? axis_name(input, axis) : name,
                                       fmt::to_string(axis == 0 ? kFirstAxis : kOtherAxes));
      assumed.push_back(fmt::format("{}={}", added.first->first, added.first->second));
    }
  }
  return fmt::format("{}", fmt::join(assumed, ", "));
}

void throw_with_assumed(const Error& error, const std::string& assumed) {
  throw_error(
      error.kind(),
      fmt::format(
          "{}\nThese sizes were assumed, since the model leaves them open: {}. Give those of "
          "your inputs with --size NAME=N, and elements on which shapes depend with --input "
          "NAME=VALUE.",
          error.what(), assumed),
      error.reason());
}

void require_names(const char* option, const Names& given, const std::vector<std::string>& known) {
  for (const auto& [name, value] : given)
    if (std::ranges::find(known, name) == known.end())
      throw UsageError(known.empty()
                           ? fmt::format("--{} {}: the model has none", option, name)
                           : fmt::format("--{} {}: the model has {}{}", option, name,
                                         fmt::join(known, ", "), did_you_mean(name, known)));
}

}  // namespace plugrad::tools
