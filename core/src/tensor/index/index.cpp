// Turns index expressions into movement; advanced_index.cpp reads the entries that are tensors.
#include "tensor/index/index.h"

#include <algorithm>

#include "plugrad/functional.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axis;

namespace tensor {

Range resolve_slice(const Slice& s, int64_t size) {
  require(s.step != 0, "[slice] the step is 0");
  const bool forward = s.step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto clipped = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  const int64_t start = s.start ? clipped(s.start->number()) : (forward ? 0 : size - 1);
  const int64_t stop = s.stop ? clipped(s.stop->number()) : (forward ? size : -1);
  const int64_t distance = forward ? stop - start : start - stop;
  const int64_t by = s.step == INT64_MIN ? INT64_MAX : std::abs(s.step);
  return {start, distance > 0 ? (distance - 1) / by + 1 : 0, s.step};
}

namespace {

Tensor cut(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  std::vector<Part> box(static_cast<size_t>(x.ndim()));
  box[static_cast<size_t>(axis)] = {begin, end};
  return x.shrink(box);
}

/// Every step-th element, from the first: splits the axis into rows of `step`, keeps the first
/// column.
Tensor every(const Tensor& x, int64_t axis, int64_t step, int64_t count) {
  // negative if the axis has a tail after the last row
  const int64_t missing = count * step - x.size(axis);
  const Tensor whole = missing < 0 ? cut(x, axis, 0, count * step) : padded_view(x, axis, missing);
  const Tensor rows = whole.unflatten(axis, {count, step});
  return cut(rows, axis + 1, 0, 1).squeeze(axis + 1);
}

Tensor read_range(const Tensor& x, int64_t axis, const Range& range) {
  if (range.count == 0) return cut(x, axis, 0, 0);
  if (range.count == 1) return cut(x, axis, range.start, range.start + 1);
  const int64_t by = std::abs(range.step), reach = (range.count - 1) * by;
  int64_t low = range.step > 0 ? range.start : range.start - reach, high = low + reach + 1;
  // Cuts whole steps if the axis has enough elements: then `every` is a view without padding.
  if (range.step > 0)
    high = std::min(high + by - 1, x.size(axis));
  else
    low = std::max<int64_t>(low - (by - 1), 0);
  Tensor y = cut(x, axis, low, high);
  if (range.step < 0) y = y.flip(axis);
  return by == 1 ? y : every(y, axis, by, range.count);
}

int64_t checked_index(int64_t number, int64_t axis, const Tensor& x) {
  const int64_t size = x.size(axis), at = number < 0 ? number + size : number;
  require_index(at >= 0 && at < size, "[index] {} is out of range for axis {} of {}", number, axis,
                tensor::lazy_text(x));
  return at;
}

Tensor index_from_end(int64_t number, int64_t axis, const Tensor& x) {
  const AxisSize size = axis_size(x, axis);
  require_index(-number <= size.least,
                "[index] {} may be out of range for axis {} of {}, whose size may be {}", number,
                axis, shown_shape(x), size.least);
  return (size.count + number).reshape({1});
}

bool has_tensor(const Slice& slice) {
  return (slice.start && slice.start->is_tensor()) || (slice.stop && slice.stop->is_tensor());
}

// n to n + 3 has three elements, whatever n is: they must lie within the axis.
std::optional<VariableRange> range_of_fixed_length(SizeArithmetic& sizes, const Tensor& x,
                                                   int64_t axis, const Place& start,
                                                   const Place& stop, int64_t step) {
  if (!start.value.varies() || !stop.value.varies() || start.value.least < 0 || step <= 0 ||
      has_variable_size(x, axis))
    return {};
  const auto length = sizes.elements(stop.place - start.place);
  if (!length || length->front().varies() || length->front().most <= 0) return {};
  const int64_t count = (length->front().most - 1) / step + 1;
  const auto first = sizes.value_now(start.value);
  require_index(!first || *first + (count - 1) * step < x.size(axis),
                "[index] {} elements from {} on reach beyond axis {} of {}", count,
                first.value_or(0), axis, lazy_text(x));
  return VariableRange{start.place, start.value, {count, count, kNoId}, step};
}

IndexEntry resolve_variable(const Tensor& x, const Slice& slice, int64_t axis) {
  auto sizes = std::make_shared<SizeArithmetic>();
  sizes->add(x);
  const auto place_of = [&](const std::optional<Size>& bound) -> Place {
    if (!bound) return {};
    const GivenSize given("index", *bound, *sizes);
    return {given.tensor, given.value};
  };
  const Place start = place_of(slice.start), stop = place_of(slice.stop);
  if (!start.value.varies() && !stop.value.varies()) {
    const auto number = [](const Place& place) {
      return place.place.defined() ? std::optional<Size>(place.value.most) : std::nullopt;
    };
    return {Index::Kind::Slice,
            resolve_slice({number(start), number(stop), slice.step}, x.size(axis))};
  }
  try {
    auto range = range_of_fixed_length(*sizes, x, axis, start, stop, slice.step);
    if (!range) range = clipped_range(*sizes, x, axis, start, stop, slice.step);
    const SizeValue& count = range->count;
    require(
        !count.varies() || count.most >= 2,
        "[index] a slice along axis {} of {} has {} or {} elements: a variable size may be 2 at "
        "least",
        axis, shown_shape(x), count.least, count.most);
    return {Index::Kind::Slice, {0, count.most, slice.step}, {}, VariableEntry{sizes, *range}};
  } catch (const UndecidedSlice& undecided) {
    fail(ErrorKind::User, "[index] a slice along axis {} of {} {}", axis, shown_shape(x),
         undecided.reason);
  }
}

IndexEntry resolve(const Tensor& x, const Index& index, int64_t axis, size_t number) {
  const int64_t size = x.size(axis);
  const Range whole{0, size, 1};
  switch (index.kind) {
    case Index::Kind::Number: {
      const Range range{checked_index(index.number, axis, x), 1, 1};
      if (index.number >= 0 || !has_variable_size(x, axis)) return {Index::Kind::Number, range};
      return {Index::Kind::Number, range, index_from_end(index.number, axis, x)};
    }
    case Index::Kind::Slice:
      if (has_tensor(index.slice)) return resolve_variable(x, index.slice, axis);
      return {Index::Kind::Slice, resolve_slice(index.slice, size)};
    case Index::Kind::List: {
      std::vector<int32_t> indices;
      for (int64_t item : index.list)
        indices.push_back(static_cast<int32_t>(checked_index(item, axis, x)));
      require(size <= INT32_MAX, "[index] axis {} of {} is too long for a list; use a tensor", axis,
              tensor::lazy_text(x));
      return {Index::Kind::Tensor, whole, Tensor::from(indices, x.device())};
    }
    default:
      require_type(index.tensor->dtype() != DType::Bool,
                   "[index] index {} is a bool mask: use masked_select(mask), or masked_fill and "
                   "where(mask, …), which "
                   "keeps the shape",
                   number);
      return {Index::Kind::Tensor, whole,
              wrapped_indices(indices_of("index", *index.tensor, size), x, axis)};
  }
}

}  // namespace

std::vector<IndexEntry> resolve_indices(const Tensor& x, const std::vector<Index>& indices) {
  using Kind = Index::Kind;
  const auto uses_axis = [](const Index& i) {
    return i.kind != Kind::NewAxis && i.kind != Kind::Ellipsis;
  };
  const int64_t rank = x.ndim(), used = std::ranges::count_if(indices, uses_axis);
  require_index(used <= rank, "[index] {} indices for shape {} of {} axes", used,
                tensor::lazy_text(x), rank);
  require_index(std::ranges::count(indices, Kind::Ellipsis, &Index::kind) <= 1,
                "[index] more than one ellipsis");
  std::vector<IndexEntry> entries;
  int64_t axis = 0;
  const auto fill_up_to = [&](int64_t end) {
    for (; axis < end; ++axis) entries.push_back({Kind::Slice, {0, x.size(axis), 1}});
  };
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i].kind == Kind::NewAxis)
      entries.push_back({Kind::NewAxis});
    else if (indices[i].kind == Kind::Ellipsis)
      fill_up_to(axis + rank - used);
    else
      entries.push_back(resolve(x, indices[i], axis++, i));
  }
  fill_up_to(rank);
  return entries;
}

Tensor read_ranges(const Tensor& x, const std::vector<IndexEntry>& entries) {
  Tensor y = x;
  Shape shape;
  int64_t axis = 0;
  for (const IndexEntry& e : entries) {
    if (e.kind == Index::Kind::NewAxis) {
      shape.push_back(1);
      continue;
    }
    const bool from_end = e.kind == Index::Kind::Number && e.indices.defined();
    y = e.variable ? elements_of(*e.variable->sizes, y, axis, e.variable->range)
        : from_end ? select(y, axis, e.indices)
                   : read_range(y, axis, e.range);
    ++axis;
    if (e.kind != Index::Kind::Number) shape.push_back(e.range.count);
  }
  return y.reshape(shape);
}

}  // namespace tensor

Tensor Tensor::slice(int64_t axis, const Slice& s) const {
  const int64_t at = checked_axis("slice", axis, ndim());
  if (tensor::has_tensor(s)) {
    std::vector<Index> indices(static_cast<size_t>(at), Slice());
    indices.emplace_back(s);
    return index(indices);
  }
  return tensor::read_range(*this, at, tensor::resolve_slice(s, size(at)));
}

Tensor Tensor::index(const std::vector<Index>& indices) const {
  const tensor::NamedFunction named("index");
  const std::vector<tensor::IndexEntry> entries = tensor::resolve_indices(*this, indices);
  const Tensor x = tensor::read_ranges(*this, entries);
  const tensor::TensorIndex read(x, entries);
  return read.is_empty() ? x : read.read();
}

Tensor Tensor::operator[](const Index& i) const& {
  return index({i});
}

Tensor Tensor::operator[](std::initializer_list<Index> indices) const& {
  return index(indices);
}

namespace {

Tensor triangle(const Tensor& x, const Size& diagonal, bool lower) {
  require(x.ndim() >= 2, "[{}] shape {} has fewer than two axes", lower ? "tril" : "triu",
          tensor::lazy_text(x));
  const int64_t n = x.size(-2), m = x.size(-1);
  // Diagonals further out keep all or nothing.
  const Tensor above =
      diagonal.is_tensor() ? diagonal.tensor() : Tensor(std::clamp(diagonal.number(), -n, m));
  const Tensor rows = Tensor::arange(n).reshape({n, 1}) + above, columns = Tensor::arange(m);
  const Tensor kept = lower ? columns <= rows : columns >= rows;
  return x.dtype() == DType::Bool ? x & kept : where(kept, x, 0);
}

}  // namespace

Tensor Tensor::tril(const Size& diagonal) const {
  return triangle(*this, diagonal, true);
}
Tensor Tensor::triu(const Size& diagonal) const {
  return triangle(*this, diagonal, false);
}

}  // namespace plugrad
