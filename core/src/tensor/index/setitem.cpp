// Turns x[…] = value into a select between x and the value, padded to the shape of x.
//   x[1:5:2] = v   ->   x = where(1 <= i & i < 5 & (i - 1) % 2 == 0, padded v, x)
#include <algorithm>
#include <tuple>

#include "plugrad/functional.h"
#include "plugrad/no_grad.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/recording/remembered.h"
#include "tensor/sizes/variable_sizes.h"
#include "tensor/write.h"

namespace plugrad {

namespace tensor {

Tensor reached(const Range& range, int64_t size, int64_t rank, int64_t axis) {
  if (range.count == size) return {};
  const int64_t by = range.count > 1 ? std::abs(range.step) : 1;
  const int64_t low = range.step < 0 ? range.start - (range.count - 1) * by : range.start;
  const int64_t high = low + (range.count - 1) * by;
  const Tensor along = counter(size, rank, axis);
  Tensor hit;
  const auto also = [&](const Tensor& more) { hit = hit.defined() ? hit & more : more; };
  if (low > 0) also(along >= low);
  if (high < size - 1) also(along <= high);
  if (by > 1) also((along - low) % by == 0);
  return hit;
}

}  // namespace tensor

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

/// Whether an index of an axis of `size` is in the range, and the value's elements at these indices.
std::pair<Tensor, Tensor> framed_by_variables(const Tensor& value, int64_t axis,
                                              const tensor::VariableEntry& entry, int64_t size) {
  const auto& [first, start, count, step] = entry.range;
  const auto behind_first = [&](const Tensor& positions) {
    return positions - first.cast(DType::I32);
  };
  const Tensor along = behind_first(tensor::counter(size, value.ndim(), axis));
  Tensor hit = (along >= 0) & (along < entry.sizes->tensor_of(count) * step);
  if (step > 1) hit = hit & (along % step == 0);
  const Tensor places = behind_first(Tensor::arange(size));
  return {hit, tensor::select(value, axis, step > 1 ? places.floor_div(step) : places)};
}

/// A tensor after an assignment, and where it differs (undefined: everywhere).
struct Updated {
  Tensor x, where;
};

/// x after the assignment of `value`, which has the shape that the index reads, to its ranges.
Updated write_ranges(const Tensor& x, const std::vector<IndexEntry>& entries, const Tensor& value) {
  const Shape shape = x.shape();
  Shape box;
  for (const IndexEntry& e : entries)
    if (e.kind != Index::Kind::NewAxis) box.push_back(e.range.count);
  if (std::ranges::find(box, 0) != box.end()) return {x, Tensor(false)};
  Tensor frame = value.reshape(box), hit;
  int64_t axis = 0;
  for (const IndexEntry& e : entries) {
    if (e.kind == Index::Kind::NewAxis) continue;
    const int64_t size = shape[static_cast<size_t>(axis)];
    Tensor here;
    if (e.variable) {
      std::tie(here, frame) = framed_by_variables(frame, axis++, *e.variable, size);
    } else {
      here = tensor::reached(e.range, size, x.ndim(), axis);
      frame = framed_value(frame, axis++, e.range, size);
    }
    if (here.defined()) hit = hit.defined() ? hit & here : here;
  }
  return {hit.defined() ? plugrad::where(hit, frame, x) : frame, hit};
}

/// `value` in the dtype of `x` and the shape and sizes of `old`, the elements that it replaces.
Tensor fitted(const Tensor& value, const Tensor& x, const Tensor& old) {
  const Shape shape = old.shape();
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
          tensor::shown_shape(value), tensor::shown_shape(old));
  const Tensor fitting = value.cast(x.dtype()).reshape(given).expand(shape);
  if (tensor::has_variable_size(x)) return fitting;
  for (int64_t axis = 0; axis < fitting.ndim(); ++axis)
    if (tensor::has_variable_size(old, axis))
      tensor::require_inside("setitem", fitting, old, axis);
    else
      tensor::require_fixed("setitem", fitting, axis,
                            "and the elements that are changed have none: choose what is replaced "
                            "with where(), or read the value's elements first");
  return fitting;
}

/// x after x[indices] = value.
Updated updated(const Tensor& x, const std::vector<Index>& indices, const Tensor& value) {
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
  const Tensor fitting = fitted(value, x, old);
  return write_ranges(x, entries, tensors.is_empty() ? fitting : tensors.written(fitting));
}

/// Numbers that tell apart indices that are no tensors.
std::vector<int64_t> index_numbers(const std::vector<Index>& indices) {
  std::vector<int64_t> numbers;
  for (const Index& i : indices) {
    const auto kind = static_cast<int64_t>(i.kind);
    if (i.kind != Index::Kind::Slice) {
      numbers.insert(numbers.end(), {kind, i.number});
      continue;
    }
    const auto& [start, stop, step] = i.slice;
    numbers.insert(numbers.end(), {kind, start.has_value(), start ? start->number() : 0,
                                   stop.has_value(), stop ? stop->number() : 0, step});
  }
  return numbers;
}

bool is_tensor_index(const Index& i) {
  const auto is_tensor = [](const std::optional<Size>& bound) {
    return bound && bound->is_tensor();
  };
  return i.kind == Index::Kind::Tensor || i.kind == Index::Kind::List || is_tensor(i.slice.start) ||
         is_tensor(i.slice.stop);
}

bool is_behind_detach(const engine::TensorState& state) {
  for (const engine::TensorState* each = &state; each; each = each->links.base)
    if (each->links.is_detached) return true;
  return false;
}

}  // namespace

void Tensor::set_index(const std::vector<Index>& indices, const Tensor& value) {
  const tensor::NamedFunction named("setitem");
  require(defined(), "[setitem] the tensor is undefined; assign it a value first");
  tensor::require_writable("setitem", *state_, true);
  // The elements that stay keep their gradients, also where none are recorded.
  const Tensor given = is_grad_enabled() || !value.defined() ? value : value.detach();
  const tensor::GradScope scope;
  if (state_->links.base == nullptr && std::ranges::none_of(indices, is_tensor_index)) {
    const Tensor* const operands[] = {this, &given};
    const Tensor changed =
        tensor::remembered("setitem", index_numbers(indices), operands, tensor::Operands::Any,
                           [&] { return updated(*this, indices, given).x; });
    if (is_sharded()) {  // it stays on its mesh, with its spec
      assign(changed);
      return;
    }
    tensor::Recorder r("setitem");
    const Id node = r.use(changed);
    r.use(*this);
    return tensor::write(r, *state_, node, kNoId);
  }
  const auto [changed, where] = updated(*this, indices, given);
  if (is_sharded()) {  // it stays on its mesh, with its spec
    assign(changed);
    return;
  }
  // The gradients of elements that a tensor of indices leaves flow on behind a detached view.
  const Tensor mask_of_change =
      is_behind_detach(*state_) && std::ranges::any_of(indices, is_tensor_index)
          ? updated(Tensor::zeros(shape(), DType::Bool, device()), indices, Tensor(true)).x
          : where;
  tensor::Recorder r("setitem");
  const Id node = r.use(changed);
  r.use(*this);
  const bool is_view = state_->links.base != nullptr;  // of which the other elements stay
  const Id mask = is_view && mask_of_change.defined()
                      ? r.broadcast_to(r.use(mask_of_change), r.shape(node))
                      : kNoId;
  tensor::write(r, *state_, node, mask);
}

/// Target of an assignment: x[indices], of a tensor that may be gone.
struct IndexedTensor::Target {
  std::weak_ptr<engine::TensorState> base;
  std::vector<Index> indices;
  bool is_temporary = false;  // no handle and no other tensor would show the elements

  bool has_tensors() const { return std::ranges::any_of(indices, is_tensor_index); }
};

IndexedTensor Tensor::operator[](const Index& i) & {
  return (*this)[{i}];
}

IndexedTensor Tensor::operator[](std::initializer_list<Index> indices) & {
  return {index(indices),
          std::make_shared<IndexedTensor::Target>(IndexedTensor::Target{state_, indices})};
}

IndexedTensor Tensor::operator[](const Index& i) && {
  return std::move(*this)[{i}];
}

IndexedTensor Tensor::operator[](std::initializer_list<Index> indices) && {
  const bool is_temporary = state_ && state_.use_count() == 1 && !state_->links.base &&
                            state_->links.writes == detail::ViewLinks::Writes::ToBase;
  return {index(indices), std::make_shared<IndexedTensor::Target>(
                              IndexedTensor::Target{state_, indices, is_temporary})};
}

IndexedTensor IndexedTensor::operator[](const Index& i) && {
  return std::move(*this)[{i}];
}

IndexedTensor IndexedTensor::operator[](std::initializer_list<Index> indices) && {
  const bool is_copy = target_ && (target_->is_temporary || target_->has_tensors());
  return {index(indices),
          std::make_shared<Target>(Target{tensor::state_of(*this), indices, is_copy})};
}

IndexedTensor& IndexedTensor::operator=(const Tensor& other) & {
  static_cast<Tensor&>(*this) = other;
  target_.reset();
  return *this;
}

void IndexedTensor::write(const Tensor& value) const {
  std::shared_ptr<engine::TensorState> state = target_ ? target_->base.lock() : nullptr;
  require(state != nullptr, "[setitem] the indexed tensor is gone");
  require(!target_->is_temporary,
          "[setitem] the elements of a temporary tensor would change, which nothing shows: use one "
          "index, x[{{indices, …}}] = value, or name the tensor");
  // Nothing reads the elements of a temporary afterwards: it need not show the new ones.
  if (const auto& own = tensor::state_of(*this); own.use_count() == 1)
    engine::Session::current().make_value(*own);
  tensor::tensor_of(std::move(state)).set_index(target_->indices, value);
}

}  // namespace plugrad
