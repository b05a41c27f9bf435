#include "onnx/segments/open_sizes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/host_memory.h"
#include "base/log.h"
#include "ir/facts.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::onnx {
namespace {

constexpr size_t kMostAlone = 64;    // combinations of values
constexpr size_t kMostSeen = 4096;   // values of a size
constexpr size_t kMostHistory = 32;  // combinations, which sums are looked for in
constexpr size_t kVaries = 3;        // values of a size that varies
constexpr int64_t kLeastBound = 64;
constexpr int kMostBounds = 4;    // of a size
constexpr int kMostSums = 4;      // of a size
constexpr int kTimesOften = 8;    // in a row; such a value is recorded alone
constexpr size_t kMostOften = 4;  // values of a size
constexpr size_t kTold = 8;       // values of a size that does not vary
constexpr uint64_t kMemoryShare = 8;

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

OpenSizes::OpenSizes(const std::vector<const ValueMessage*>& declared, const SizeBounds& bounds,
                     bool warns)
    : declared_(declared),
      has_bounds_(!bounds.empty()),
      warns_(warns),
      most_bytes_(static_cast<double>(host_memory_bytes() / kMemoryShare)) {
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
      if (differs && has_bounds_)
        fail(ErrorKind::User, "[onnx] {}", contradiction(inputs, tensors));
      if (differs) return {};
      value = size;
    }
  }
  return values;
}

bool OpenSizes::is_recorded_alone(const Values& values) {
  if (std::ranges::find(vary_, true) == vary_.end() && alone_.size() < kMostAlone)
    alone_.insert(values);
  return alone_.contains(values);
}

void OpenSizes::note_value(Size& size, std::int64_t value) {
  if (size.seen.size() < kMostSeen) size.seen.insert(value);
  size.times = value == size.last ? size.times + 1 : 1;
  size.last = value;
  if (size.times == kTimesOften && size.alone.size() < kMostOften) size.alone.insert(value);
  if (!warns_ || size.exact_because.empty() || size.is_told || size.seen.size() < kTold) return;
  size.is_told = true;
  log_warning(
      "[onnx] size \"{}\" has had {} values, and the model is recorded for each of them: {}",
      size.name, size.seen.size(), size.exact_because);
}

std::string OpenSizes::explain() const {
  std::string text;
  for (const Size& size : sizes_)
    if (!size.exact_because.empty())
      text += fmt::format("- size \"{}\" is recorded for each value: {}\n", size.name,
                          size.exact_because);
    else if (size.variable)
      text += fmt::format("- size \"{}\" varies from {} to {} in one recording\n", size.name,
                          size.variable->low(), size.variable->high());
  return text;
}

void OpenSizes::note(const Values& values) {
  if (history_.size() < kMostHistory && std::ranges::find(history_, values) == history_.end())
    history_.push_back(values);
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (values[i] < 0) continue;
    Size& size = sizes_[i];
    require(!size.has_bounds ||
                (values[i] >= size.variable->low() && values[i] <= size.variable->high()),
            "[onnx] size \"{}\" is {}; the model was loaded for {} to {}", size.name, values[i],
            size.variable ? size.variable->low() : 0, size.variable ? size.variable->high() : 0);
    note_value(size, values[i]);
  }
  if (has_bounds_) return;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    Size& size = sizes_[i];
    if (size.sum && !holds(*size.sum, values, i)) {
      if (history_.back() != values) history_.push_back(values);
      size.sum.reset();
      size.sums++;
    }
    if (!size.sum && size.seen.size() >= kVaries && size.sums < kMostSums) size.sum = sum_of(i);
  }
}

bool OpenSizes::holds(const Sum& sum, const Values& values, size_t size) {
  std::int64_t total = sum.number;
  bool all_given = values[size] >= 0;
  for (const size_t each : sum.of) {
    all_given &= values[each] >= 0;
    total += values[each];
  }
  return all_given && total == values[size];
}

// The sum that gave the size in all calls so far: of another size and a number, or of two sizes.
std::optional<OpenSizes::Sum> OpenSizes::sum_of(size_t size) const {
  std::vector<size_t> others;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const auto& sum = sizes_[i].sum;
    if (sum && std::ranges::find(sum->of, size) != sum->of.end()) return {};
    if (i != size && !sum && sizes_[i].seen.size() > 1) others.push_back(i);
  }
  const auto always = [&](const Sum& sum) {
    return std::ranges::all_of(history_,
                               [&](const Values& values) { return holds(sum, values, size); });
  };
  const Values& some = history_.back();
  for (const size_t one : others) {
    const Sum sum{{one}, some[size] - some[one]};
    const bool is_first = sum.number == 0 && size < one;
    if (sum.number >= 0 && !is_first && always(sum)) return sum;
  }
  for (const size_t one : others)
    for (const size_t two : others)
      if (one < two && always({{one, two}})) return Sum{{one, two}};
  return {};
}

bool OpenSizes::may_vary(Size& size, std::int64_t value) const {
  if (value <= 0 || size.sum || !size.exact_because.empty() || size.alone.contains(value) ||
      size.seen.size() < kVaries)
    return false;
  const std::int64_t old = size.variable ? size.variable->high() : 0;
  if (value <= old) return true;
  const auto bound = std::bit_ceil(static_cast<uint64_t>(
      std::max({2 * std::max(*size.seen.rbegin(), value), kLeastBound, 4 * old})));
  if (size.bounds == kMostBounds || bound > INT32_MAX) {
    size.exact_because = fmt::format("it grew beyond {}", old);
    return false;
  }
  ++size.bounds;
  size.variable.emplace(size.name, 1, static_cast<std::int64_t>(bound));
  return true;
}

void OpenSizes::choose_inferred(const Values& values) {
  bool is_one_new = false;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (is_one_by_one_ && is_one_new && !sizes_[i].is_proven) continue;
    vary_[i] = may_vary(sizes_[i], values[i]);
    is_one_new |= vary_[i] && !sizes_[i].is_proven;
  }
  if (is_recorded_alone(values)) vary_.assign(sizes_.size(), false);
  for (size_t i = 0; i < sizes_.size(); ++i) {
    Size& size = sizes_[i];
    if (!size.sum || !size.exact_because.empty() || values[i] <= 0) continue;
    std::int64_t bound = size.sum->number;
    for (const size_t each : size.sum->of) {
      vary_[i] = vary_[i] || vary_[each];
      bound += vary_[each] ? sizes_[each].variable->high() : values[each];
    }
    if (vary_[i] && (!size.variable || size.variable->high() != bound))
      size.variable.emplace(size.name, 1, bound);
  }
}

std::vector<SizeSum> OpenSizes::sums_in(const std::vector<size_t>& inputs,
                                        const Values& values) const {
  std::map<size_t, SizeSum::Axis> first;  // by size
  std::vector<SizeSum> sums;
  const auto for_each_axis = [&](auto use) {
    for (size_t i = 0; i < inputs.size(); ++i)
      for (size_t axis = 0; axis < axes_[inputs[i]].size(); ++axis)
        if (const auto size = axes_[inputs[i]][axis]; size && vary_[*size])
          use(SizeSum::Axis{inputs[i], axis}, *size);
  };
  for_each_axis([&](SizeSum::Axis axis, size_t size) { first.emplace(size, axis); });
  for_each_axis([&](SizeSum::Axis axis, size_t size) {
    if (!sizes_[size].sum) return;
    SizeSum sum{axis, {}, sizes_[size].sum->number};
    for (const size_t each : sizes_[size].sum->of) {
      if (vary_[each])
        sum.of.push_back(first.at(each));
      else
        sum.number += values[each];
    }
    sums.push_back(std::move(sum));
  });
  return sums;
}

Shape OpenSizes::room_of(const Tensor& x, const Axes& axes) const {
  Shape room = x.shape();
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (axes[axis] && vary_[*axes[axis]]) room[axis] = sizes_[*axes[axis]].variable->high();
  return room;
}

// Bounds that the host's memory does not hold are those of a mistake.
bool OpenSizes::fits_memory(const std::vector<size_t>& inputs,
                            const std::vector<Tensor>& tensors) const {
  double bytes = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    double count = 1;
    for (const std::int64_t size : room_of(tensors[i], axes_[inputs[i]]))
      count *= static_cast<double>(size);
    bytes += (count - static_cast<double>(tensors[i].numel())) *
             static_cast<double>(size_of(tensors[i].dtype()));
  }
  return bytes <= most_bytes_;
}

Tensor OpenSizes::with_variables(const Tensor& x, const Axes& axes) const {
  const Shape shape = x.shape(), room = room_of(x, axes);
  const auto varies = [&](const auto& size) { return size && vary_[*size]; };
  if (std::ranges::none_of(axes, varies)) return x;
  // Integers behind the size may be read as indices, so that these are zeros.
  auto copied = is_float(x.dtype()) ? tensor::in_room(x, room) : std::nullopt;
  Tensor wide = copied ? *std::move(copied)
                       : Tensor::from_bytes(in_room(x.to_bytes(), shape, room, size_of(x.dtype())),
                                            room, x.dtype(), x.device());
  for (size_t axis = 0; axis < axes.size(); ++axis)
    if (varies(axes[axis]))
      wide = sizes_[*axes[axis]].variable->limit(wide, static_cast<int64_t>(axis), shape[axis]);
  return wide;
}

std::optional<VariedInputs> OpenSizes::varied(const std::vector<size_t>& inputs,
                                              const std::vector<Tensor>& tensors) {
  if (sizes_.empty()) return {};
  const std::optional<Values> values = values_of(inputs, tensors);
  if (!values) return {};
  note(*values);
  return varied_again(inputs, tensors);
}

std::optional<VariedInputs> OpenSizes::varied_again(const std::vector<size_t>& inputs,
                                                    const std::vector<Tensor>& tensors) {
  const Values values = values_of(inputs, tensors).value();
  vary_.assign(sizes_.size(), false);
  for (size_t i = 0; i < sizes_.size(); ++i) vary_[i] = sizes_[i].has_bounds;
  if (!has_bounds_ && !settings().deterministic) choose_inferred(values);
  if (std::ranges::find(vary_, true) == vary_.end()) return {};
  if (!has_bounds_ && !fits_memory(inputs, tensors)) {
    give_up("inputs of the bounds would take too much memory");
    return varied_again(inputs, tensors);
  }
  VariedInputs result{{}, sums_in(inputs, values)};
  for (size_t i = 0; i < inputs.size(); ++i)
    result.tensors.push_back(with_variables(tensors[i], axes_[inputs[i]]));
  return result;
}

void OpenSizes::succeeded() {
  for (size_t i = 0; i < sizes_.size(); ++i) sizes_[i].is_proven |= vary_[i];
}

void OpenSizes::give_up(const std::string& reason) {
  std::vector<size_t> added;
  std::optional<size_t> last;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    if (!vary_[i] || sizes_[i].sum) continue;
    last = i;
    if (!sizes_[i].is_proven) added.push_back(i);
  }
  if (added.size() > 1)
    is_one_by_one_ = true;
  else
    sizes_[added.empty() ? last.value() : added[0]].exact_because = reason;
}

void OpenSizes::give_up_all(const std::string& reason) {
  for (Size& size : sizes_) size.exact_because = reason;
}

}  // namespace plugrad::onnx
