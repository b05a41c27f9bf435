// Pads with a value, or with elements of the tensor.
#include <algorithm>
#include <cmath>

#include "plugrad/functional.h"
#include "tensor/exact_number.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

using Pairs = std::vector<std::pair<int64_t, int64_t>>;
constexpr int64_t kMost = int64_t{1} << 48;  // elements before or after an axis

Id pad_node(Recorder& r, Id node, const Pairs& pads) {
  std::vector<int64_t> list;
  for (const auto& [before, after] : pads) list.insert(list.end(), {before, after});
  if (std::ranges::all_of(list, [](int64_t n) { return n == 0; })) return node;
  std::vector<int64_t> longer;
  for (size_t i = 0; i < pads.size(); ++i)
    if (pads[i] != std::pair<int64_t, int64_t>()) longer.push_back(static_cast<int64_t>(i));
  node = r.masked(node, longer, Op::Add);
  return r.graph().add(Op::Pad, r.dtype(node), {node}, r.graph().list(list));
}

/// The pairs of all axes, outermost first.
Pairs by_axis(const Tensor& x, const Pads& pads) {
  if (!pads.is_flat()) return pads.pairs();
  const std::vector<int64_t>& numbers = pads.numbers();
  const auto rank = static_cast<size_t>(x.ndim());
  require(numbers.size() % 2 == 0 && numbers.size() / 2 <= rank,
          "[pad] ({}) are {} numbers for shape {}: two for each axis, the last axis first",
          fmt::join(numbers, ", "), numbers.size(), tensor::lazy_text(x));
  Pairs pairs(rank);
  for (size_t i = 0; i < numbers.size() / 2; ++i)
    pairs[rank - 1 - i] = {numbers[2 * i], numbers[2 * i + 1]};
  return pairs;
}

/// Crops x by the negative numbers; returns the positive ones in `pads`.
Tensor crop(const Tensor& x, const Pairs& before_after, Pairs& pads) {
  const Shape shape = x.shape();
  require(before_after.size() == shape.size(), "[pad] {} entries given for shape {} of {} axes",
          before_after.size(), tensor::lazy_text(shape), shape.size());
  Pairs bounds;
  pads.clear();
  for (size_t i = 0; i < shape.size(); ++i) {
    const auto [before, after] = before_after[i];
    require(std::abs(before / 2) < kMost && std::abs(after / 2) < kMost,
            "[pad] ({}, {}) elements around axis {} of {} are too many", before, after, i,
            tensor::lazy_text(shape));
    bounds.emplace_back(std::max<int64_t>(-before, 0), shape[i] - std::max<int64_t>(-after, 0));
    require(bounds[i].first <= bounds[i].second,
            "[pad] ({}, {}) removes more than axis {} of {} has", before, after, i,
            tensor::lazy_text(shape));
    pads.emplace_back(std::max<int64_t>(before, 0), std::max<int64_t>(after, 0));
  }
  return x.shrink(bounds);
}

/// The value in the dtype. Errors: User if it is no number that the dtype holds.
Id fill_of(Recorder& r, const Tensor& value, DType dtype) {
  const Id node = r.use(value);
  const DType given = r.dtype(node);
  require(r.shape(node).empty(), "[pad] the value has shape {}, not one number",
          tensor::lazy_text(r.shape(node)));
  if (!is_const(r.graph(), node)) {
    require_type(promote(given, dtype) == dtype, "[pad] a {} value into a {} tensor; cast it first",
                 name_of(given), name_of(dtype));
  } else if (!is_float(dtype)) {
    const tensor::ExactNumber number = tensor::exact_number(r.graph(), node);
    require(number.is_whole && tensor::holds_exactly(dtype, number.whole),
            "[pad] {} is no value of a {} tensor", number.real, name_of(dtype));
  }
  return r.cast(node, dtype);
}

Tensor pad_value(const Tensor& x, const Pairs& pads, const Tensor& value) {
  Recorder r("pad");
  const Id node = r.use(x), fill = fill_of(r, value, strong(r.dtype(node)));
  const Tensor padded = r.done(pad_node(r, node, pads));
  const Shape shape = r.shape(node);
  const bool is_zero = is_const(r.graph(), fill) && r.graph()[fill].arg == 0;  // and not -0
  if (is_zero || shape == padded.shape()) return padded;
  const Id inside = r.expand(
      r.reshape(r.graph().constant(DType::Bool, int64_t{1}), Shape(shape.size(), 1)), shape);
  const Id padded_inside = pad_node(r, r.like(inside, node), pads);
  return plugrad::where(r.done(padded_inside), padded, r.done(fill));
}

/// Pads one axis with its own elements.
Tensor continue_axis(const Tensor& x, int64_t axis, int64_t before, int64_t after, PadMode mode) {
  const int64_t size = x.size(axis), longest = std::max(before, after);
  const auto part = [&](int64_t begin, int64_t end) { return x.slice(axis, {begin, end}); };
  Tensor front, back;
  switch (mode) {
    case PadMode::Reflect:
      require(longest < size, "[pad] reflecting {} of axis {} of {}: at most {} are there", longest,
              axis, tensor::lazy_text(x), std::max<int64_t>(size - 1, 0));
      front = part(1, before + 1).flip(axis);
      back = part(size - 1 - after, size - 1).flip(axis);
      break;
    case PadMode::Circular:
      require(longest <= size, "[pad] going round {} of axis {} of {}: at most {} are there",
              longest, axis, tensor::lazy_text(x), size);
      front = part(size - before, size);
      back = part(0, after);
      break;
    default: {
      require(size > 0, "[pad] axis {} of {} has no edge to repeat", axis, tensor::lazy_text(x));
      Shape sides = x.shape();
      sides[static_cast<size_t>(axis)] = before;
      front = part(0, 1).expand(sides);
      sides[static_cast<size_t>(axis)] = after;
      back = part(size - 1, size).expand(sides);
    }
  }
  return cat({front, x, back}, axis);
}

}  // namespace

Tensor tensor::padded_view(const Tensor& x, int64_t axis, int64_t after) {
  Recorder r("pad");
  const Id node = r.use(x);
  Pairs pads(r.shape(node).size());
  pads[static_cast<size_t>(axis)] = {0, after};
  return r.view_of(x, pad_node(r, node, pads));
}

Tensor Tensor::pad(const Pads& pads, const Tensor& value) const {
  const tensor::NamedFunction named("pad");
  Pairs positive;
  const Tensor x = crop(*this, by_axis(*this, pads), positive);
  return pad_value(x, positive, value);
}

Tensor Tensor::pad(const Pads& given, PadMode mode, const Tensor& value) const {
  const tensor::NamedFunction named("pad");
  if (mode == PadMode::Constant) return pad(given, value);
  Pairs pads, crops = by_axis(*this, given);
  const Tensor cropped = crop(*this, crops, pads);
  // A reflection may read elements that the crop removes; the other modes pad the cropped tensor.
  Tensor x = mode == PadMode::Reflect ? *this : cropped;
  for (size_t i = 0; i < pads.size(); ++i) {
    crops[i] = {std::min<int64_t>(crops[i].first, 0), std::min<int64_t>(crops[i].second, 0)};
    if (pads[i].first != 0 || pads[i].second != 0)
      x = continue_axis(x, static_cast<int64_t>(i), pads[i].first, pads[i].second, mode);
  }
  return tensor::own_handle(mode == PadMode::Reflect ? crop(x, crops, pads) : x);
}

Tensor Tensor::pad_to(const std::vector<std::optional<int64_t>>& sizes, const Tensor& value) const {
  const Shape from = shape();
  require(sizes.size() == from.size(), "[pad_to] {} sizes given for shape {} of {} axes",
          sizes.size(), tensor::lazy_text(from), from.size());
  Pairs pads;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t to = sizes[i].value_or(from[i]);
    require(to >= from[i], "[pad_to] {} is less than axis {} of {} has", to, i,
            tensor::lazy_text(from));
    pads.emplace_back(0, to - from[i]);
  }
  return pad(pads, value);
}

}  // namespace plugrad
