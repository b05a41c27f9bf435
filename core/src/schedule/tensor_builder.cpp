#include "schedule/tensor_builder.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace plugrad::schedule {
namespace {

using Dims = TensorBuilder::Dims;

bool all_of(const Dims& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}

bool is_identity(const Dims& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}

/// Whether `order` keeps the axes longer than 1 in sequence: then it only reshapes.
bool moves_ones_only(const Dims& order, const Dims& shape) {
  int64_t last = -1;
  for (int64_t axis : order) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}

/// The least value of a dtype: what a maximum starts from.
Id lowest(Graph& g, DType dtype) {
  if (is_float(dtype)) return g.constant(dtype, -std::numeric_limits<double>::infinity());
  if (is_unsigned(dtype)) return g.constant(dtype, int64_t{0});
  const uint32_t bits = 8 * std::min<uint32_t>(size_of(dtype) == 0 ? 8 : size_of(dtype), 8);
  return g.constant(dtype, std::numeric_limits<int64_t>::min() >> (64 - bits));
}

}  // namespace

Id TensorBuilder::one_value(Id x) {
  while (one_value_.size() <= x) {
    const Id id = static_cast<Id>(one_value_.size());
    const Node& n = graph_[id];
    Id value = element_count(shapes_[id]) == 1 ? id : kNoId;
    // An Expand of rank 0 or of one element repeats it; the other views only look at the repeats.
    if (is_movement(n.op) && n.op != Op::Pad) {
      const Id below = one_value_[n.src[0]];
      if (below != kNoId) value = below;
    }
    one_value_.push_back(value);
  }
  return one_value_[x];
}

Id TensorBuilder::as_scalar(Id x) {
  const Id value = one_value(x);
  return value == kNoId ? kNoId : reshape(value, {});
}

Id TensorBuilder::filled(Id scalar, const Dims& shape) {
  return expand(reshape(scalar, Dims(shape.size(), 1)), shape);
}

Id TensorBuilder::reshape(Id x, const Dims& shape) {
  if (graph_[x].op == Op::Reshape) x = graph_[x].src[0];
  if (std::ranges::equal(shapes_[x], shape)) return x;
  return move(Op::Reshape, x, shape);
}

Id TensorBuilder::permute(Id x, const Dims& order) {
  if (graph_[x].op == Op::Permute) {
    const Dims inner = list(x);
    Dims both(order.size());
    for (size_t i = 0; i < order.size(); ++i) both[i] = inner[static_cast<size_t>(order[i])];
    return permute(graph_[x].src[0], both);
  }
  if (is_identity(order)) return x;
  const Dims from = shape(x);
  if (!moves_ones_only(order, from)) return move(Op::Permute, x, order);
  Dims to(order.size());
  for (size_t i = 0; i < order.size(); ++i) to[i] = from[static_cast<size_t>(order[i])];
  return reshape(x, to);
}

Id TensorBuilder::expand(Id x, const Dims& shape) {
  if (graph_[x].op == Op::Expand) x = graph_[x].src[0];
  if (std::ranges::equal(shapes_[x], shape)) return x;
  return move(Op::Expand, x, shape);
}

Id TensorBuilder::pad(Id x, const Dims& pads) {
  if (all_of(pads, 0)) return x;
  Dims to = shape(x);
  for (size_t i = 0; i < to.size(); ++i) to[i] += pads[2 * i] + pads[2 * i + 1];
  const Id value = one_value(x);
  const bool zero = value != kNoId && graph_[value].op == Op::Const && graph_[value].arg == 0;
  if (zero || count(x) == 0) return zeros(graph_[x].dtype, to);
  if (graph_[x].op != Op::Pad) return move(Op::Pad, x, pads);
  Dims both = list(x);
  for (size_t i = 0; i < both.size(); ++i) both[i] += pads[i];
  return move(Op::Pad, graph_[x].src[0], both);
}

Id TensorBuilder::shrink(Id x, const Dims& bounds) {
  const Dims from = shape(x);
  bool whole = true;
  for (size_t i = 0; i < from.size(); ++i)
    whole = whole && bounds[2 * i] == 0 && bounds[2 * i + 1] == from[i];
  if (whole) return x;
  const Node n = graph_[x];
  if (n.op == Op::Shrink) {
    Dims both = list(x);
    for (size_t i = 0; i < from.size(); ++i) {
      both[2 * i + 1] = both[2 * i] + bounds[2 * i + 1];
      both[2 * i] += bounds[2 * i];
    }
    return shrink(n.src[0], both);
  }
  if (n.op != Op::Pad) return move(Op::Shrink, x, bounds);
  const Dims pads = list(x), inner = shape(n.src[0]);
  Dims box(bounds.size()), rest(bounds.size()), to(from.size());
  bool empty = false;
  for (size_t i = 0; i < from.size(); ++i) {
    const int64_t begin = bounds[2 * i] - pads[2 * i], end = bounds[2 * i + 1] - pads[2 * i];
    to[i] = end - begin;
    box[2 * i] = std::clamp<int64_t>(begin, 0, inner[i]);
    box[2 * i + 1] = std::clamp<int64_t>(end, 0, inner[i]);
    rest[2 * i] = box[2 * i] - begin;
    rest[2 * i + 1] = end - box[2 * i + 1];
    empty = empty || box[2 * i] >= box[2 * i + 1];
  }
  return empty ? zeros(n.dtype, to) : pad(shrink(n.src[0], box), rest);
}

Id TensorBuilder::flip(Id x, const Dims& flags) {
  Dims needed = flags;
  if (graph_[x].op == Op::Flip) {
    const Dims inner = list(x);
    for (size_t i = 0; i < needed.size(); ++i) needed[i] ^= inner[i];
    x = graph_[x].src[0];
  }
  const Dims from = shape(x);
  for (size_t i = 0; i < needed.size(); ++i)
    if (from[i] <= 1) needed[i] = 0;
  return all_of(needed, 0) ? x : move(Op::Flip, x, needed);
}

Id TensorBuilder::reduce(Op op, Id x, const Dims& axes) {
  const Dims from = shape(x);
  Dims to = from, list = {static_cast<int64_t>(op)};
  for (int64_t axis : axes) {
    if (from[static_cast<size_t>(axis)] != 1) list.push_back(axis);
    to[static_cast<size_t>(axis)] = 1;
  }
  if (list.size() == 1) return x;
  const DType dtype = graph_[x].dtype;
  if (element_count(from) == 0) {
    const Id start = op == Op::Max ? lowest(graph_, dtype)
                                   : graph_.constant(dtype, int64_t{op == Op::Mul ? 1 : 0});
    return filled(start, to);
  }
  std::sort(list.begin() + 1, list.end());
  return graph_.add(Op::Reduce, dtype, {x}, graph_.list(list));
}

/// op(expand(a), expand(b)) is expand(op(a, b)) where both repeat the same shape.
Id TensorBuilder::hoisted(const Node& like, std::span<const Id> sources) {
  ListId to = 0, from = 0;
  bool any = false;
  std::vector<Id> below(sources.begin(), sources.end());
  for (Id& s : below) {
    if (shapes_[s].empty()) continue;
    if (graph_[s].op != Op::Expand) return kNoId;
    const ListId inner = shapes_.id(graph_[s].src[0]), outer = shapes_.id(s);
    if (any && (inner != from || outer != to)) return kNoId;
    any = true;
    from = inner;
    to = outer;
    s = graph_[s].src[0];
  }
  if (!any) return kNoId;
  const auto target = graph_.list(to);
  return expand(elementwise(like, below), Dims(target.begin(), target.end()));
}

Id TensorBuilder::elementwise(const Node& like, std::span<const Id> sources) {
  std::vector<Id> src(sources.begin(), sources.end());
  Dims whole;
  bool varies = false;
  for (Id s : src) {
    const auto dims = shapes_[s];
    if (!dims.empty()) whole.assign(dims.begin(), dims.end());
    varies = varies || one_value(s) == kNoId;
  }
  const bool single = element_count(whole) == 1;
  bool constant = true;
  for (Id s : src) {
    const Id value = one_value(s);
    constant = constant && value != kNoId && graph_[value].op == Op::Const;
  }
  // Where something varies or is repeated, single values take part as scalars.
  if (!single || constant)
    for (Id& s : src)
      if (const Id scalar = as_scalar(s); scalar != kNoId) s = scalar;
  if (!varies && (!single || constant) && !whole.empty())
    return filled(elementwise(like, src), whole);
  if (const Id done = hoisted(like, src); done != kNoId) return done;
  return simplified(graph_.add(like.op, like.dtype, src, like.arg));
}

/// Algebra sees values, not shapes: where only a constant or a scalar is left, it is repeated.
Id TensorBuilder::simplified(Id node) {
  const Id value = simplify_(node);
  if (shapes_.id(value) == shapes_.id(node)) return value;
  return filled(value, shape(node));
}

}  // namespace plugrad::schedule
