#include "onnx/import/open_sizes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "ir/facts.h"
#include "tensor/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr size_t kMostAlone = 4;
constexpr size_t kMostSeen = 4096;  // values of a size

// The elements at the start of a larger tensor of zeros. Axes from the last that differs on are
// copied as one row.
std::vector<std::byte> in_room(const std::vector<std::byte>& elements, const Shape& shape,
                               const Shape& room, size_t element_size) {
  std::vector<std::byte> bytes(static_cast<size_t>(element_count(std::span(room))) * element_size);
  size_t axis = shape.size();
  size_t row = element_size;
  while (axis > 0 && shape[axis - 1] == room[axis - 1]) row *= static_cast<size_t>(shape[--axis]);
  size_t wide_row = row;
  if (axis > 0) {
    --axis;
    row *= static_cast<size_t>(shape[axis]);
    wide_row *= static_cast<size_t>(room[axis]);
  }
  std::vector<std::int64_t> at(axis);
  for (size_t from = 0; row > 0 && from < elements.size(); from += row) {
    size_t to = 0;
    for (size_t i = 0; i < axis; ++i)
      to = to * static_cast<size_t>(room[i]) + static_cast<size_t>(at[i]);
    std::memcpy(bytes.data() + to * wide_row, elements.data() + from, row);
    for (size_t i = axis; i-- > 0 && ++at[i] == shape[i];) at[i] = 0;
  }
  return bytes;
}

}  // namespace

OpenSizes::OpenSizes(const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds)
    : declared_(declared), has_bounds_(!bounds.empty()) {
  std::map<std::string, size_t> numbers;
  for (const ValueMessage* input : declared) {
    Axes& axes = axes_.emplace_back();
    if (input->type.kind != TypeMessage::Kind::Tensor || !input->type.shape) continue;
    for (const auto& dim : *input->type.shape) {
      const std::string place = fmt::format("{}.{}", input->name, axes.size());
      axes.emplace_back();
      if (dim.size && *dim.size >= 0) continue;
      const std::string name = dim.name.empty() ? place : std::string(dim.name);
      const auto [at, is_new] = numbers.emplace(name, sizes_.size());
      if (is_new) sizes_.push_back({name});
      axes.back() = at->second;
      numbers.emplace(place, at->second);
    }
  }
  set_bounds(bounds, numbers);
}

void OpenSizes::set_bounds(const SizeBounds& bounds, const std::map<std::string, size_t>& numbers) {
  std::vector<std::string> names;
  for (const Size& size : sizes_) names.push_back(size.name);
  for (const auto& [name, bound] : bounds) {
    const auto at = numbers.find(name);
    require(at != numbers.end(), "[onnx] the model has no open size \"{}\"; it has: {}", name,
            names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
    const auto [low, high] = bound;
    require(low >= 0 && high >= 2 && low <= high && high <= INT32_MAX,
            "[onnx] size \"{}\" has the bounds {} and {}; the least is from 0 to the largest, and "
            "the largest from 2 to {}",
            name, low, high, INT32_MAX);
    Size& size = sizes_[at->second];
    require(!size.has_bounds, "[onnx] size \"{}\" is given bounds twice, once as \"{}\"", size.name,
            name);
    size.has_bounds = true;
    size.variable.emplace(size.name, low, high);
  }
}

std::string OpenSizes::contradiction(const std::vector<size_t>& inputs,
                                     const std::vector<Tensor>& tensors) const {
  struct Place {
    std::string_view input;
    size_t axis;
    std::int64_t value;
  };
  std::map<size_t, Place> first;  // by size
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Axes& axes = axes_[inputs[i]];
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (!axes[axis]) continue;
      const Place here{declared_[inputs[i]]->name, axis,
                       tensors[i].size(static_cast<int64_t>(axis))};
      const Place& other = first.emplace(*axes[axis], here).first->second;
      if (other.value != here.value)
        return fmt::format(
            "inputs \"{}\" (axis {}) and \"{}\" (axis {}) share the size \"{}\", which is {} in "
            "one and {} in the other",
            other.input, other.axis, here.input, here.axis, sizes_[*axes[axis]].name, other.value,
            here.value);
    }
  }
  return "";
}

// Nothing if a name has two sizes, which only matters if one recording serves several.
std::optional<OpenSizes::Values> OpenSizes::values_of(const std::vector<size_t>& inputs,
                                                      const std::vector<Tensor>& tensors) const {
  Values values(sizes_.size(), -1);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Axes& axes = axes_[inputs[i]];
    if (tensor::has_variable_size(tensors[i])) return {};  // the caller's own
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (!axes[axis]) continue;
      const std::int64_t size = tensors[i].size(static_cast<int64_t>(axis));
      std::int64_t& value = values[*axes[axis]];
      const bool differs = value >= 0 && value != size;
      require(!differs || !has_bounds_, "[onnx] {}", contradiction(inputs, tensors));
      if (differs) return {};
      value = size;
    }
  }
  return values;
}

bool OpenSizes::is_recorded_alone(const Values& values) {
  if (alone_.size() < kMostAlone) alone_.insert(values);
  return alone_.contains(values);
}

// The size that has had the most values, with a variable that has room for this one. None if it is
// 0, which few operators take, or no variable has that much room.
std::optional<size_t> OpenSizes::varied_most(const Values& values) {
  std::optional<size_t> most;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < 0 || sizes_[i].seen.size() < 2) continue;
    if (!most || sizes_[i].seen.size() > sizes_[*most].seen.size()) most = i;
  }
  if (!most || values[*most] == 0) return {};
  Size& size = sizes_[*most];
  if (!size.variable || values[*most] > size.variable->high()) {
    const auto room = std::bit_ceil(
        static_cast<uint64_t>(std::max({*size.seen.rbegin(), values[*most], int64_t{2}})));
    if (room > INT32_MAX) return {};
    size.variable.emplace(size.name, 1, static_cast<int64_t>(room));
  }
  return most;
}

Tensor OpenSizes::with_variables(const Tensor& x, const Axes& axes,
                                 const std::vector<bool>& vary) const {
  const Shape shape = x.shape();
  Shape room = shape;
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis] && vary[*axes[axis]]) room[axis] = sizes_[*axes[axis]].variable->high();
  if (std::ranges::none_of(axes, [&](const auto& size) { return size && vary[*size]; })) return x;
  Tensor wide = Tensor::from_bytes(in_room(x.to_bytes(), shape, room, size_of(x.dtype())), room,
                                   x.dtype(), x.device());
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis] && vary[*axes[axis]])
      wide = sizes_[*axes[axis]].variable->limit(wide, static_cast<int64_t>(axis), shape[axis]);
  return wide;
}

std::optional<std::vector<Tensor>> OpenSizes::varied(const std::vector<size_t>& inputs,
                                                     const std::vector<Tensor>& tensors) {
  are_inferred_ = false;
  if (is_given_up_ || sizes_.empty()) return {};
  const std::optional<Values> values = values_of(inputs, tensors);
  if (!values) return {};
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const std::int64_t value = (*values)[i];
    if (value < 0) continue;
    Size& size = sizes_[i];
    require(!size.has_bounds || (value >= size.variable->low() && value <= size.variable->high()),
            "[onnx] size \"{}\" is {}; the model was loaded for {} to {}", size.name, value,
            size.variable ? size.variable->low() : 0, size.variable ? size.variable->high() : 0);
    if (size.seen.size() < kMostSeen) size.seen.insert(value);
  }
  const bool infers = !has_bounds_ && !is_recorded_alone(*values);
  const auto inferred = infers ? varied_most(*values) : std::nullopt;
  std::vector<bool> vary;
  for (size_t i = 0; i < sizes_.size(); ++i) vary.push_back(sizes_[i].has_bounds || inferred == i);
  if (std::ranges::none_of(vary, [](bool each) { return each; })) return {};
  are_inferred_ = inferred.has_value();
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i)
    result.push_back(with_variables(tensors[i], axes_[inputs[i]], vary));
  return result;
}

}  // namespace plugrad::onnx
