// Movement ops, which change shapes and no elements. A function checks its arguments and records a
// few nodes.
#include <algorithm>
#include <numeric>

#include "jit/trace.h"
#include "plugrad/functional.h"
#include "tensor/handles.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/sizes/sizes.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axes;
using tensor::checked_axis;
using tensor::Recorder;

namespace {

/// `shape` with its -1 replaced by the size that the element count requires. Most tensors are made
/// here: shapes become text only for an error.
Shape resolve_shape(const Shape& from, const Shape& wanted) {
  const int64_t count = element_count(from);
  Shape shape = wanted;
  int64_t open = -1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < -1)
      fail(ErrorKind::User, "[{}] size {} in {} is negative", tensor::called("reshape"), shape[i],
           to_string(wanted));
    if (shape[i] >= 0) continue;
    if (open >= 0)
      fail(ErrorKind::User, "[{}] {} has more than one -1", tensor::called("reshape"),
           to_string(wanted));
    open = static_cast<int64_t>(i);
    shape[i] = 1;
  }
  int64_t known = tensor::checked_count("reshape", shape);
  if (open >= 0) {
    if (known <= 0 || count % known != 0)
      fail(ErrorKind::User, "[{}] {} does not fit the {} elements of {}", tensor::called("reshape"),
           to_string(wanted), count, to_string(from));
    shape[static_cast<size_t>(open)] = count / known;
    known = count;
  }
  if (known != count)
    fail(ErrorKind::User, "[{}] {} has {} elements, {} has {}", tensor::called("reshape"),
         to_string(from), count, to_string(shape), known);
  return shape;
}

void require_rank(std::string_view function, size_t given, const Shape& shape) {
  if (given == shape.size()) return;
  fail(ErrorKind::User, "[{}] {} entries given for shape {} of {} axes", tensor::called(function),
       given, to_string(shape), shape.size());
}

}  // namespace

namespace {

/// The elements of x, whose sizes are fixed, in memory for the largest of the sizes.
Tensor reshaped_to_room(const Tensor& x, const tensor::GivenSizes& sizes) {
  const std::optional<Shape> actual = sizes.actual();
  require(
      actual.has_value(),
      "[{}] {} has no variable size, so that it does not take one in a jitted function: give it "
      "the size before, by limit or fit of the Variable, or by a slice",
      tensor::called("reshape"), tensor::lazy_text(x));
  const Tensor part = x.reshape(*actual);
  std::vector<std::optional<int64_t>> room(actual->size());
  for (size_t axis = 0; axis < room.size(); ++axis)
    if (sizes.varies(axis)) room[axis] = sizes.largest()[axis];
  return sizes.limited(part.pad_to(room));
}

}  // namespace

namespace {

/// Whether x has variable sizes, or takes any and is as large as the shape.
bool may_take_largest(const Tensor& x, const Shape& shape) {
  return tensor::has_variable_size(x) ||
         (tensor::takes_any_sizes(x) && element_count(shape) == x.numel());
}

/// Whether the shape has as many elements as x, which has variable sizes, but no place for these.
bool takes_actual_sizes(Recorder& r, Id node, const Tensor& x, const Shape& shape) {
  if (jit_detail::JitTrace::active() || std::ranges::count(shape, -1) > 0) return false;
  const int64_t count = element_count(shape);
  if (element_count(r.shape(node)) == count) {
    const std::vector<Extent> made = (*r.extents())[r.reshape(node, shape)];
    if (std::ranges::none_of(made, &Extent::is_undecided)) return false;
  }
  return element_count(x.bound_shape()) == count;
}

}  // namespace

Tensor Tensor::reshape(const Sizes& sizes) const {
  if (!sizes.list().empty()) {
    const tensor::NamedFunction named("reshape");
    const tensor::GivenSizes given("reshape", sizes);
    if (!given.vary() || may_take_largest(*this, given.largest()))
      return given.checked(reshape(given.largest()));
    return reshaped_to_room(*this, given);
  }
  Recorder r("reshape");
  const Id node = r.use(*this);
  if (r.session().is_counted(node) && takes_actual_sizes(r, node, *this, sizes.numbers()))
    return tensor::actual_part(*this).reshape(sizes.numbers());
  return r.view_of(*this, r.reshape(node, resolve_shape(r.shape(node), sizes.numbers())));
}

Tensor Tensor::view(const Sizes& shape) const {
  const tensor::NamedFunction named("view");
  return reshape(shape);
}

Tensor Tensor::permute(const std::vector<int64_t>& order) const {
  Recorder r("permute");
  const Id node = r.use(*this);
  const int64_t rank = static_cast<int64_t>(r.shape(node).size());
  require_rank("permute", order.size(), r.shape(node));
  std::vector<int64_t> axes;
  for (int64_t axis : order) axes.push_back(checked_axis("permute", axis, rank));
  checked_axes("permute", Axes(axes), rank);  // an axis must not occur twice
  return r.view_of(*this, r.permute(node, axes));
}

Tensor Tensor::transpose(int64_t axis0, int64_t axis1) const {
  std::vector<int64_t> order(static_cast<size_t>(ndim()));
  std::iota(order.begin(), order.end(), 0);
  std::swap(order[static_cast<size_t>(checked_axis("transpose", axis0, ndim()))],
            order[static_cast<size_t>(checked_axis("transpose", axis1, ndim()))]);
  return permute(order);
}

Tensor Tensor::expand(const Sizes& sizes) const {
  if (!sizes.list().empty()) {
    const tensor::NamedFunction named("expand");
    const tensor::GivenSizes given("expand", sizes);
    return given.checked(expand(given.largest()));
  }
  const Shape& wanted = sizes.numbers();
  Recorder r("expand");
  const Id node = r.use(*this);
  const Shape from = r.shape(node);
  require(wanted.size() >= from.size(), "[expand] {} has fewer axes than {}",
          tensor::lazy_text(wanted), tensor::lazy_text(from));
  Shape shape = wanted;
  for (size_t i = 0; i < shape.size(); ++i) {
    const size_t added = wanted.size() - from.size();
    const int64_t old = i < added ? 1 : from[i - added];
    if (shape[i] == -1) shape[i] = old;
    if (shape[i] < 0 || (shape[i] != old && old != 1))
      fail(ErrorKind::User, "[expand] {} does not expand to {}: only sizes of 1 repeat",
           r.shown(node), to_string(wanted));
  }
  const Tensor expanded = r.view_of(*this, r.broadcast_to(node, shape));
  if (element_count(shape) > element_count(from))
    tensor::state_of(expanded)->links.writes = detail::ViewLinks::Writes::Expanded;
  return expanded;
}

namespace {

bool has_variable_end(const Part& part) {
  return part && (part->first.is_tensor() || part->second.is_tensor());
}

}  // namespace

Tensor Tensor::shrink(const Box& box) const {
  if (std::ranges::any_of(box.parts(), has_variable_end)) {
    const tensor::NamedFunction named("shrink");
    std::vector<Index> parts;
    std::vector<Part> fixed = box.parts();
    require_rank("shrink", fixed.size(), shape());
    for (Part& part : fixed) {
      parts.emplace_back(has_variable_end(part) ? Slice(part->first, part->second) : Slice());
      if (has_variable_end(part)) part.reset();
    }
    return shrink(fixed).index(parts);
  }
  Recorder r("shrink");
  const Id node = r.use(*this);
  const Shape shape = r.shape(node);
  require_rank("shrink", box.parts().size(), shape);
  std::vector<int64_t> list;
  bool whole = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    const Part& part = box.parts()[i];
    const int64_t begin = part ? part->first.number() : 0;
    const int64_t end = part ? part->second.number() : shape[i];
    require(0 <= begin && begin <= end && end <= shape[i],
            "[{}] ({}, {}) is no part of axis {} of {}", r.function(), begin, end, i,
            tensor::lazy_text(shape));
    list.insert(list.end(), {begin, end});
    whole &= begin == 0 && end == shape[i];
  }
  if (whole) return r.view_of(*this, node);
  return r.view_of(*this, r.graph().add(Op::Shrink, r.dtype(node), {node}, r.graph().list(list)));
}

Tensor Tensor::shrink_to(const std::vector<std::optional<Size>>& sizes) const {
  const tensor::NamedFunction named("shrink_to");
  std::vector<Part> parts;
  for (const std::optional<Size>& size : sizes) parts.push_back(size ? Part(0, *size) : Part());
  return shrink(parts);
}

namespace {

/// Reverses an axis of a variable size, starting with its last element.
Tensor flip_variable(const Tensor& x, int64_t axis) {
  const tensor::AxisSize size = tensor::axis_size(x, axis);
  const Tensor indices = size.count - 1 - Tensor::arange(x.size(axis));
  return tensor::limited(tensor::select(x, axis, indices), axis, size);
}

}  // namespace

Tensor Tensor::flip(const Axes& axes) const {
  Tensor x = *this;
  std::vector<int64_t> flags(static_cast<size_t>(ndim()), 0);
  for (int64_t axis : checked_axes("flip", axes, ndim())) {
    const bool varies = tensor::has_variable_size(*this, axis);
    if (varies) x = flip_variable(x, axis);
    flags[static_cast<size_t>(axis)] = varies ? 0 : 1;
  }
  Recorder r("flip");
  const Id node = r.use(x);
  const bool is_flipped = std::ranges::find(flags, 1) != flags.end();
  const Id flipped =
      is_flipped ? r.graph().add(Op::Flip, r.dtype(node), {node}, r.graph().list(flags)) : node;
  // The elements of an axis of a variable size are read by indices.
  return r.view_of(*this, flipped);
}

Tensor Tensor::squeeze(const Axes& axes) const {
  const Shape shape = this->shape();
  const std::vector<int64_t> list = checked_axes("squeeze", axes, ndim());
  Shape rest;
  for (size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1 || !std::ranges::binary_search(list, static_cast<int64_t>(i)))
      rest.push_back(shape[i]);
  return reshape(rest);
}

Tensor Tensor::unsqueeze(int64_t axis) const {
  Shape shape = this->shape();
  shape.insert(shape.begin() + checked_axis("unsqueeze", axis, ndim() + 1), 1);
  return reshape(shape);
}

Tensor Tensor::flatten(int64_t start, int64_t end) const {
  const Shape shape = this->shape();
  if (shape.empty()) return reshape({1});
  const int64_t first = checked_axis("flatten", start, ndim()),
                last = checked_axis("flatten", end, ndim());
  require(first <= last, "[flatten] start axis {} is after end axis {}", start, end);
  Shape result(shape.begin(), shape.begin() + first);
  result.push_back(element_count(
      std::span(shape).subspan(static_cast<size_t>(first), static_cast<size_t>(last - first + 1))));
  result.insert(result.end(), shape.begin() + last + 1, shape.end());
  return reshape(result);
}

Tensor Tensor::unflatten(int64_t axis, const Sizes& given) const {
  Shape shape = this->shape();
  const int64_t at = checked_axis("unflatten", axis, ndim());
  if (!given.list().empty()) {
    std::vector<Size> list(shape.begin(), shape.end());
    list.erase(list.begin() + at);
    list.insert(list.begin() + at, given.list().begin(), given.list().end());
    return reshape(std::move(list));
  }
  const Shape& sizes = given.numbers();
  const Shape parts = resolve_shape({shape[static_cast<size_t>(at)]}, sizes);
  shape.erase(shape.begin() + at);
  shape.insert(shape.begin() + at, parts.begin(), parts.end());
  return reshape(shape);
}

}  // namespace plugrad
