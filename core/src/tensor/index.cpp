// Indexing: numbers and slices are movement; places that are data are a comparison with a counter
// and a sum, which the rewriter turns into one load.
#include <algorithm>

#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::checked_axis;

namespace {

/// Start, count and step of a slice of an axis of `size`, as Python clips them.
struct Range {
  int64_t start, count, step;
};

Range resolve(const Slice& s, int64_t size) {
  require(s.step != 0, "[slice] the step is 0");
  const bool forward = s.step > 0;
  const int64_t low = forward ? 0 : -1, high = forward ? size : size - 1;
  const auto place = [&](int64_t at) { return std::clamp(at < 0 ? at + size : at, low, high); };
  const int64_t start = s.start ? place(*s.start) : (forward ? 0 : size - 1);
  const int64_t stop = s.stop ? place(*s.stop) : (forward ? size : -1);
  const int64_t distance = forward ? stop - start : start - stop, by = std::abs(s.step);
  return {start, distance > 0 ? (distance + by - 1) / by : 0, s.step};
}

Tensor cut(const Tensor& x, int64_t axis, int64_t begin, int64_t end) {
  std::vector<std::pair<int64_t, int64_t>> box;
  for (int64_t size : x.shape()) box.emplace_back(0, size);
  box[static_cast<size_t>(axis)] = {begin, end};
  return x.shrink(box);
}

/// Every step-th element, from the first: rows of `step` of which the first column stays.
Tensor every(const Tensor& x, int64_t axis, int64_t step, int64_t count) {
  const int64_t missing = count * step - x.size(axis);  // negative: a tail that no row needs
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(x.ndim()));
  pads[static_cast<size_t>(axis)] = {0, missing};
  const Tensor rows = x.pad(pads).unflatten(axis, {count, step});
  return cut(rows, axis + 1, 0, 1).squeeze(axis + 1);
}

Shape counter_shape(size_t rank, size_t axis, int64_t size) {
  Shape shape(rank, 1);
  shape[axis] = size;
  return shape;
}

void require_places(std::string_view function, const Tensor& places) {
  require(is_integer(places.dtype()), "[{}] places are {}, not integers; cast them", function,
          name_of(places.dtype()));
}

Tensor wrapped(const Tensor& places, int64_t size) {
  return is_unsigned(places.dtype()) ? places : where(places < 0, places + size, places);
}

/// sum over `axis` of x where hit: at most one element, so no rounding, and none of it is a sum.
Tensor pick(const Tensor& hit, const Tensor& x, int64_t axis) {
  const Tensor values = x.dtype() == DType::Bool ? x.cast(DType::U8) : x;
  return where(hit, values, 0).sum(axis).cast(x.dtype());
}

}  // namespace

Tensor Tensor::slice(int64_t axis, const Slice& s) const {
  const int64_t at = checked_axis("slice", axis, ndim());
  const Range range = resolve(s, size(at));
  if (range.count == 0) return cut(*this, at, 0, 0);
  const int64_t by = std::abs(range.step), reach = (range.count - 1) * by;
  int64_t low = range.step > 0 ? range.start : range.start - reach, high = low + reach + 1;
  // Whole steps where the axis has them: a view without padding.
  if (range.step > 0)
    high = std::min(high + by - 1, size(at));
  else
    low = std::max<int64_t>(low - (by - 1), 0);
  Tensor x = cut(*this, at, low, high);
  if (range.step < 0) x = x.flip(at);
  return by == 1 ? x : every(x, at, by, range.count);
}

Tensor Tensor::operator[](const Index& index) const {
  return (*this)[std::initializer_list<Index>{index}];
}

Tensor Tensor::operator[](std::initializer_list<Index> indices) const {
  std::vector<Index> list(indices);
  const auto uses_axis = [](const Index& i) {
    return i.kind != Index::Kind::NewAxis && i.kind != Index::Kind::Ellipsis;
  };
  const int64_t used = std::ranges::count_if(list, uses_axis);
  require(used <= ndim(), "[index] {} indices for shape {} of {} axes", used, to_string(shape()),
          ndim());
  const auto ellipses =
      std::ranges::count_if(list, [](const Index& i) { return i.kind == Index::Kind::Ellipsis; });
  require(ellipses <= 1, "[index] more than one ellipsis");
  Tensor x = *this;
  int64_t axis = 0;
  for (const Index& i : list) {
    switch (i.kind) {
      case Index::Kind::Ellipsis:
        axis += ndim() - used;
        break;
      case Index::Kind::NewAxis:
        x = x.unsqueeze(axis++);
        break;
      case Index::Kind::Slice:
        x = x.slice(axis++, i.slice);
        break;
      case Index::Kind::Tensor:
        x = x.index_select(axis, *i.tensor);
        axis += i.tensor->ndim();
        break;
      case Index::Kind::Number: {
        const int64_t size = x.size(axis), at = i.number < 0 ? i.number + size : i.number;
        require(at >= 0 && at < size, "[index] {} is out of range for axis {} of {}", i.number,
                axis, to_string(x.shape()));
        x = cut(x, axis, at, at + 1).squeeze(axis);
        break;
      }
    }
  }
  return x;
}

namespace {

/// Elements of an axis at `places`, whose own axes take its place; those outside are 0.
Tensor select(const Tensor& x, int64_t axis, const Tensor& places) {
  const auto at = static_cast<size_t>(axis);
  const Shape from = x.shape(), chosen = places.shape();
  // (lead…, places…, axis, tail…), where axis is summed away.
  Shape data(from.begin(), from.begin() + axis), rows(at, 1);
  data.insert(data.end(), chosen.size(), 1);
  rows.insert(rows.end(), chosen.begin(), chosen.end());
  data.insert(data.end(), from.begin() + axis, from.end());
  rows.insert(rows.end(), from.size() - at, 1);
  const size_t summed = at + chosen.size();
  const Tensor counter =
      Tensor::arange(from[at]).reshape(counter_shape(data.size(), summed, from[at]));
  return pick(places.reshape(rows) == counter, x.reshape(data), static_cast<int64_t>(summed));
}

}  // namespace

Tensor Tensor::index_select(int64_t axis, const Tensor& places) const {
  require_places("index_select", places);
  const int64_t at = checked_axis("index_select", axis, ndim());
  return select(*this, at, wrapped(places, size(at)));
}

Tensor Tensor::gather(int64_t axis, const Tensor& places) const {
  require_places("gather", places);
  const auto at = static_cast<size_t>(checked_axis("gather", axis, ndim()));
  const Shape from = shape(), chosen = places.shape();
  require(from.size() == chosen.size(), "[gather] places {} and {} have different numbers of axes",
          to_string(chosen), to_string(from));
  Tensor x = *this;
  for (size_t i = 0; i < from.size(); ++i) {
    require(i == at || chosen[i] <= from[i], "[gather] places {} are larger than {} along axis {}",
            to_string(chosen), to_string(from), i);
    if (i != at) x = cut(x, static_cast<int64_t>(i), 0, chosen[i]);
  }
  // The axis goes last in the data, and the places' own axis stays where it was.
  const auto axis_of = static_cast<int64_t>(at);
  x = x.unsqueeze(-1).transpose(axis_of, -1);
  const Tensor counter = arange(from[at]);
  return pick(wrapped(places, from[at]).unsqueeze(-1) == counter, x, -1);
}

Tensor Tensor::one_hot(int64_t classes) const {
  require_places("one_hot", *this);
  require(classes >= 0, "[one_hot] the number of classes is {}", classes);
  return (unsqueeze(-1) == arange(classes)).cast(DType::I32);
}

Tensor embedding(const Tensor& table, const Tensor& places) {
  require(table.ndim() == 2, "[embedding] the table has shape {}, not (rows, width)",
          to_string(table.shape()));
  require_places("embedding", places);
  return select(table, 0, places);
}

namespace {

Tensor triangle(const Tensor& x, int64_t diagonal, bool lower) {
  require(x.ndim() >= 2, "[{}] shape {} has fewer than two axes", lower ? "tril" : "triu",
          to_string(x.shape()));
  const int64_t n = x.size(-2), m = x.size(-1);
  const Tensor rows = Tensor::arange(n).reshape({n, 1}) + diagonal, columns = Tensor::arange(m);
  return where(lower ? columns <= rows : columns >= rows, x, 0);
}

}  // namespace

Tensor Tensor::tril(int64_t diagonal) const {
  return triangle(*this, diagonal, true);
}
Tensor Tensor::triu(int64_t diagonal) const {
  return triangle(*this, diagonal, false);
}

}  // namespace plugrad
