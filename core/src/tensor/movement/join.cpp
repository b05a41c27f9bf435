// Splits, repeats, rolls and joins tensors along axes.
#include <algorithm>
#include <numeric>

#include "plugrad/functional.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/recording/remembered.h"
#include "tensor/sizes/given_sizes.h"
#include "tensor/sizes/sizes.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad {

using tensor::checked_axes;
using tensor::checked_axis;

std::vector<Tensor> Tensor::split(const std::vector<int64_t>& sizes, int64_t axis) const {
  const int64_t at = checked_axis("split", axis, ndim());
  const int64_t total = std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
  require(total == size(at), "[split] sizes ({}) add up to {}, axis {} of {} has {}",
          fmt::join(sizes, ", "), total, at, tensor::lazy_text(*this), size(at));
  std::vector<Tensor> parts;
  int64_t begin = 0;
  for (int64_t part : sizes) {
    require(part >= 0, "[split] size {} is negative", part);
    parts.push_back(slice(at, {begin, begin + part}));
    begin += part;
  }
  return parts;
}

std::vector<Tensor> Tensor::split(int64_t part, int64_t axis) const {
  const int64_t total = size(checked_axis("split", axis, ndim()));
  require(part > 0 || (part == 0 && total == 0), "[split] size {} is not positive", part);
  std::vector<int64_t> sizes;
  for (int64_t begin = 0; begin < total; begin += part)
    sizes.push_back(std::min(part, total - begin));
  if (sizes.empty()) sizes.push_back(0);
  return split(sizes, axis);
}

std::vector<Tensor> Tensor::chunk(int64_t count, int64_t axis) const {
  require(count > 0, "[chunk] count {} is not positive", count);
  const int64_t total = size(checked_axis("chunk", axis, ndim()));
  if (total > 0) return split(total / count + (total % count != 0 ? 1 : 0), axis);
  tensor::require_host_memory("chunk", {count}, sizeof(Tensor));
  return split(std::vector<int64_t>(static_cast<size_t>(count), 0), axis);
}

namespace {

/// Repeats an axis of a variable size behind its last element.
Tensor repeat_variable(const Tensor& x, int64_t axis, int64_t count) {
  const tensor::AxisSize size = tensor::axis_size(x, axis);
  const Tensor indices = Tensor::arange(count * x.size(axis)) % size.count;
  return tensor::limited(tensor::select(x, axis, indices), axis,
                         {size.count * count, size.least * count, true});
}

}  // namespace

Tensor Tensor::repeat(const Sizes& given) const {
  const tensor::GivenSizes sizes("repeat", given);
  const Shape& repeats = sizes.largest();
  Tensor x = *this;
  Shape shape = this->shape();
  require(repeats.size() >= shape.size(), "[repeat] {} has fewer entries than {} has axes",
          tensor::lazy_text(repeats), tensor::lazy_text(shape));
  const size_t added = repeats.size() - shape.size();
  shape.insert(shape.begin(), added, 1);
  Shape split, result;
  std::vector<Size> expanded;
  for (size_t i = 0; i < shape.size(); ++i) {
    require(repeats[i] >= 0, "[repeat] {} is negative", repeats[i]);
    const auto axis = static_cast<int64_t>(i) - static_cast<int64_t>(added);
    const bool varies = axis >= 0 && repeats[i] != 1 && tensor::has_variable_size(x, axis);
    require(!varies || !sizes.varies(i),
            "[repeat] axis {} of {} has a variable size, so that it is not repeated a variable "
            "number of times",
            axis, tensor::shown_shape(x));
    if (varies) x = repeat_variable(x, axis, repeats[i]);
    result.push_back(repeats[i] * shape[i]);
    split.insert(split.end(), {1, varies ? result[i] : shape[i]});
    const Size times = sizes.varies(i) ? given.list()[i] : Size(varies ? 1 : repeats[i]);
    expanded.insert(expanded.end(), {times, split.back()});
  }
  return tensor::own_handle(x.reshape(split).expand(expanded).reshape(result));
}

Tensor Tensor::repeat_interleave(int64_t count, std::optional<int64_t> axis) const {
  require(count >= 0, "[repeat_interleave] count {} is negative", count);
  if (!axis) return flatten().repeat_interleave(count, 0);
  const int64_t at = checked_axis("repeat_interleave", *axis, ndim());
  Shape expanded = shape(), result = expanded;
  expanded.insert(expanded.begin() + at + 1, count);
  result[static_cast<size_t>(at)] *= count;
  return tensor::own_handle(unsqueeze(at + 1).expand(expanded).reshape(result));
}

Tensor Tensor::roll(const Axes& shifts, const Axes& axes) const {
  if (axes.is_all()) {
    require(shifts.list().size() == 1, "[roll] {} shifts without axes: give one, or an axis each",
            shifts.list().size());
    return flatten().roll(shifts, 0).reshape(shape());
  }
  require(shifts.list().size() == axes.list().size(), "[roll] {} shifts for {} axes",
          shifts.list().size(), axes.list().size());
  Tensor x = *this;
  for (size_t i = 0; i < shifts.list().size(); ++i) {
    const int64_t at = checked_axis("roll", axes.list()[i], ndim()), count = size(at);
    if (count == 0) continue;
    const int64_t by = ((shifts.list()[i] % count) + count) % count;
    if (by != 0) x = cat({x.slice(at, {count - by, {}}), x.slice(at, {0, count - by})}, at);
  }
  return tensor::own_handle(x);
}

namespace {

/// Places x at index `begin` of an axis of `total` elements; all others, and those beyond a
/// variable size, are 0.
Tensor framed(const Tensor& x, int64_t axis, const tensor::AxisSize& begin, int64_t total) {
  if (begin.varies) return tensor::select(x, axis, Tensor::arange(total) - begin.count);
  std::vector<std::pair<int64_t, int64_t>> frame(static_cast<size_t>(x.ndim()));
  frame[static_cast<size_t>(axis)] = {begin.least, total - begin.least - x.size(axis)};
  return tensor::whole(x, 0, axis).pad(frame);
}

// Selects each part by its index range: a sum would turn -0 into +0.
Tensor selected_parts(const std::vector<Tensor>& tensors, int64_t axis) {
  const Shape first = tensors[0].shape();
  const auto at =
      static_cast<size_t>(checked_axis("cat", axis, static_cast<int64_t>(first.size())));
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    Shape shape = t.shape();
    if (shape.size() == first.size()) shape[at] = first[at];
    if (shape != first)
      fail(ErrorKind::User, "[{}] {} and {} may differ along axis {} alone", tensor::called("cat"),
           tensor::shown_shape(tensors[0]), tensor::shown_shape(t), at);
    total += t.size(static_cast<int64_t>(at));
  }
  Tensor result;
  tensor::AxisSize begin{Tensor(0)};
  for (const Tensor& t : tensors) {
    const Tensor part = framed(t, static_cast<int64_t>(at), begin, total);
    if (!result.defined())
      result = part;
    else if (t.size(static_cast<int64_t>(at)) > 0)
      result = where(tensor::counter(total, result.ndim(), static_cast<int64_t>(at)) < begin.count,
                     result, part);
    begin = tensor::plus(begin, tensor::axis_size(t, static_cast<int64_t>(at)));
  }
  return tensor::limited(result, static_cast<int64_t>(at), begin);
}

}  // namespace

Tensor cat(const std::vector<Tensor>& tensors, int64_t axis) {
  const tensor::NamedFunction named("cat");
  require(!tensors.empty(), "[cat] no tensors are given");
  std::vector<const Tensor*> operands;
  for (const Tensor& t : tensors) operands.push_back(&t);
  return tensor::remembered("cat", std::span(&axis, 1), operands, tensor::Operands::Any,
                            [&] { return selected_parts(tensors, axis); });
}

Tensor stack(const std::vector<Tensor>& tensors, int64_t axis) {
  const tensor::NamedFunction named("stack");
  require(!tensors.empty(), "[stack] no tensors are given");
  std::vector<Tensor> rows;
  for (const Tensor& t : tensors) {
    if (t.shape() != tensors[0].shape())
      fail(ErrorKind::User, "[stack] shapes {} and {} differ", tensor::shown_shape(tensors[0]),
           tensor::shown_shape(t));
    rows.push_back(t.unsqueeze(axis));
  }
  return cat(rows, axis);
}

}  // namespace plugrad
