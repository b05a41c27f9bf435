// Turns x[…] = value into a select between x and the value, padded to the shape of x.
//   x[1:5:2] = v   ->   x = where(1 <= i & i < 5 & (i - 1) % 2 == 0, padded v, x)
#include <algorithm>

#include "plugrad/functional.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"
#include "tensor/record.h"
#include "tensor/variable_sizes.h"

namespace plugrad {

namespace {

using tensor::IndexEntry;
using tensor::Range;

/// The value padded to `size`, with its elements at the indices of the range; others are
/// unspecified.
Tensor framed_value(const Tensor& value, int64_t axis, const Range& range, int64_t size) {
  Tensor y = range.step < 0 ? value.flip(axis) : value;
  const int64_t by = range.count > 1 ? std::abs(range.step) : 1;
  const int64_t low = range.step < 0 ? range.start - (range.count - 1) * by : range.start;
  const int64_t reach = (range.count - 1) * by + 1;
  std::vector<std::pair<int64_t, int64_t>> pads(static_cast<size_t>(value.ndim()));
  if (by > 1) {
    pads.insert(pads.begin() + axis + 1, {0, by - 1});
    y = y.unsqueeze(axis + 1).pad(pads).flatten(axis, axis + 1);
    pads.erase(pads.begin() + axis + 1);
    y = y.slice(axis, {0, reach});
  }
  pads[static_cast<size_t>(axis)] = {low, size - low - reach};
  return y.pad(pads);
}

/// Whether an index of the axis is in the range; undefined if all are.
Tensor reached(const Range& range, int64_t size, int64_t rank, int64_t axis) {
  if (range.count == size) return {};
  const int64_t by = range.count > 1 ? std::abs(range.step) : 1;
  const int64_t low = range.step < 0 ? range.start - (range.count - 1) * by : range.start;
  const int64_t high = low + (range.count - 1) * by;
  const Tensor along = tensor::counter(size, rank, axis);
  Tensor hit;
  const auto also = [&](const Tensor& more) { hit = hit.defined() ? hit & more : more; };
  if (low > 0) also(along >= low);
  if (high < size - 1) also(along <= high);
  if (by > 1) also((along - low) % by == 0);
  return hit;
}

/// x after the assignment of `value`, which has the shape that the index reads, to its ranges.
Tensor write_ranges(const Tensor& x, const std::vector<IndexEntry>& entries, const Tensor& value) {
  const Shape shape = x.shape();
  Shape box;
  for (const IndexEntry& e : entries)
    if (e.kind != Index::Kind::NewAxis) box.push_back(e.range.count);
  if (std::ranges::find(box, 0) != box.end()) return x;
  Tensor frame = value.reshape(box), hit;
  int64_t axis = 0;
  for (const IndexEntry& e : entries) {
    if (e.kind == Index::Kind::NewAxis) continue;
    const int64_t size = shape[static_cast<size_t>(axis)];
    const Tensor here = reached(e.range, size, x.ndim(), axis);
    if (here.defined()) hit = hit.defined() ? hit & here : here;
    frame = framed_value(frame, axis++, e.range, size);
  }
  return hit.defined() ? plugrad::where(hit, frame, x) : frame;
}

/// `value` in the dtype of `x` and the assigned shape.
Tensor fitted(const Tensor& value, const Tensor& x, const Shape& shape) {
  require(value.defined(), "[setitem] the value is undefined; assign it one first");
  require_type(is_float(x.dtype()) || !is_float(value.dtype()),
               "[setitem] a {} value into a {} tensor; cast it first", name_of(value.dtype()),
               name_of(x.dtype()));
  Shape given = value.shape();
  while (given.size() > shape.size() && given[0] == 1) given.erase(given.begin());
  bool fits = given.size() <= shape.size();
  for (size_t i = 0; fits && i < given.size(); ++i) {
    const int64_t size = given[given.size() - 1 - i];
    fits = size == 1 || size == shape[shape.size() - 1 - i];
  }
  require(fits, "[setitem] a value of {} does not broadcast to the {} that is indexed",
          to_string(value.shape()), to_string(shape));
  if (!tensor::has_variable_size(x))
    tensor::require_fixed("setitem", value, {},
                          "and the tensor that is changed has none: choose what is replaced with "
                          "where(), or read the value's elements first");
  return value.cast(x.dtype()).reshape(given).expand(shape);
}

/// x after x[indices] = value.
Tensor updated(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
  const std::vector<IndexEntry> entries = tensor::resolve_indices(x, indices);
  for (const IndexEntry& e : entries)
    require(e.kind != Index::Kind::Number || !e.indices.defined(),
            "[setitem] an index counted from the end of a variable size, in a tensor of {}: choose "
            "what is "
            "replaced with where()",
            tensor::shown_shape(x));
  const Tensor ranges = tensor::read_ranges(x, entries);
  const tensor::TensorIndex tensors(ranges, entries);
  const Tensor old = tensors.is_empty() ? ranges : tensors.read();
  const Tensor fitting = fitted(value, x, old.shape());
  return write_ranges(x, entries, tensors.is_empty() ? fitting : tensors.written(fitting));
}

}  // namespace

void Tensor::set_index(const std::vector<Index>& indices, const Tensor& value) {
  const tensor::NamedFunction named("setitem");
  require(!requires_grad(),
          "[setitem] a leaf that requires a gradient cannot be changed in part: change a copy "
          "(x * 1), or assign() all of it");
  const Tensor changed = updated(*this, indices, value);
  if (is_sharded()) {  // it stays on its mesh, with its spec
    assign(changed);
    return;
  }
  tensor::Recorder r("setitem");
  r.session().assign(*state_, r.use(changed));
}

/// Target of an assignment: x[indices] of a tensor, which may be gone, or of the elements of
/// another index expression (`outer`).
struct IndexedTensor::Target {
  std::weak_ptr<engine::TensorState> base;
  std::vector<Index> indices;
  std::shared_ptr<const Target> outer;
  Tensor elements;  // of outer

  void write(const Tensor& value) const {
    if (outer) {
      for (const Index& i : outer->indices)
        require(i.kind != Index::Kind::Tensor && i.kind != Index::Kind::List,
                "[setitem] x[indices][…] = value would change a copy: use one index, "
                "x[{{indices, …}}] = value");
      return outer->write(updated(elements, indices, value));
    }
    std::shared_ptr<engine::TensorState> state = base.lock();
    require(state != nullptr, "[setitem] the indexed tensor is gone");
    tensor::tensor_of(std::move(state)).set_index(indices, value);
  }
};

IndexedTensor Tensor::operator[](const Index& i) & {
  return (*this)[{i}];
}

IndexedTensor Tensor::operator[](std::initializer_list<Index> indices) & {
  return {index(indices), std::make_shared<IndexedTensor::Target>(
                              IndexedTensor::Target{state_, indices, nullptr, {}})};
}

IndexedTensor IndexedTensor::operator[](const Index& i) && {
  return std::move(*this)[{i}];
}

IndexedTensor IndexedTensor::operator[](std::initializer_list<Index> indices) && {
  return {index(indices), std::make_shared<Target>(Target{{}, indices, target_, *this})};
}

IndexedTensor& IndexedTensor::operator=(const Tensor& other) & {
  static_cast<Tensor&>(*this) = other;
  target_.reset();
  return *this;
}

void IndexedTensor::write(const Tensor& value) const {
  require(target_ != nullptr, "[setitem] the indexed tensor is gone");
  target_->write(value);
}

}  // namespace plugrad
