// The table of view rules.
//   before   shrink (pad %a, [1, 1]), [0, 3]          after   pad (shrink %a, [0, 2]), [1, 0]
// Sources are in simplest form (tensor_builder.h): a rule sees at most two views.
#include <algorithm>
#include <limits>

#include "schedule/tensor_builder.h"

namespace plugrad::schedule {
namespace {
using namespace rules;

using DimList = TensorBuilder::Dims;

TensorBuilder& builder(const Match& m) {
  return m.context<TensorBuilder>();
}
DimList list(const Graph& g, Id id) {
  const auto values = g.arg_list(id);
  return {values.begin(), values.end()};
}
bool all_of(const DimList& values, int64_t value) {
  return std::ranges::all_of(values, [&](int64_t v) { return v == value; });
}
Id again(Graph& g, const Match& m, Id source, const DimList& values) {
  return g.add(g[m.root].op, g[m.root].dtype, {source}, g.list(values));
}

// Reshape and Expand only depend on their shape.
Id of_inner(Graph& g, const Match& m) {
  return g.add(g[m.root].op, g[m.root].dtype, {m[x]}, g[m.root].arg);
}
bool keeps_shape(const Graph& g, const Match& m) {
  return std::ranges::equal(builder(m).shape(m[x]), g.arg_list(m.root));
}

Id both_orders(Graph& g, const Match& m) {
  const DimList outer = list(g, m.root), inner = list(g, m[y]);
  DimList both(outer.size());
  for (size_t i = 0; i < outer.size(); ++i) both[i] = inner[static_cast<size_t>(outer[i])];
  return again(g, m, m[x], both);
}
bool keeps_order(const Graph& g, const Match& m) {
  const DimList order = list(g, m.root);
  for (size_t i = 0; i < order.size(); ++i)
    if (order[i] != static_cast<int64_t>(i)) return false;
  return true;
}
// Whether the order of the axes longer than 1 stays: then the permutation is a reshape.
bool moves_ones_only(const Graph& g, const Match& m) {
  const DimList shape = builder(m).shape(m[x]);
  int64_t last = -1;
  for (int64_t axis : g.arg_list(m.root)) {
    if (shape[static_cast<size_t>(axis)] == 1) continue;
    if (axis < last) return false;
    last = axis;
  }
  return true;
}
Id as_reshape(Graph& g, const Match& m) {
  const DimList from = builder(m).shape(m[x]), order = list(g, m.root);
  DimList to(order.size());
  for (size_t i = 0; i < order.size(); ++i) to[i] = from[static_cast<size_t>(order[i])];
  return g.add(Op::Reshape, g[m.root].dtype, {m[x]}, g.list(to));
}

bool pads_nothing(const Graph& g, const Match& m) {
  return all_of(list(g, m.root), 0);
}
bool pads_zeros(const Graph& g, const Match& m) {
  const Id value = builder(m).one_value(m[x]);
  const bool zero = value != kNoId && g[value].op == Op::Const && g[value].arg == 0;
  return zero || builder(m).count(m[x]) == 0;
}
Id zeros(Graph& g, const Match& m) {
  return builder(m).zeros(g[m.root].dtype, builder(m).shape(m.root));
}
Id both_pads(Graph& g, const Match& m) {
  DimList both = list(g, m[y]);
  const DimList outer = list(g, m.root);
  for (size_t i = 0; i < both.size(); ++i) both[i] += outer[i];
  return again(g, m, m[x], both);
}

bool keeps_all(const Graph& g, const Match& m) {
  const DimList from = builder(m).shape(m[x]), bounds = list(g, m.root);
  for (size_t i = 0; i < from.size(); ++i)
    if (bounds[2 * i] != 0 || bounds[2 * i + 1] != from[i]) return false;
  return true;
}
Id both_boxes(Graph& g, const Match& m) {
  DimList both = list(g, m[y]);
  const DimList outer = list(g, m.root);
  for (size_t i = 0; i < both.size(); i += 2) {
    both[i + 1] = both[i] + outer[i + 1];
    both[i] += outer[i];
  }
  return again(g, m, m[x], both);
}
// The shrunk padding pads the shrunk source.
Id pad_of_shrink(Graph& g, const Match& m) {
  const DimList bounds = list(g, m.root), pads = list(g, m[y]), inner = builder(m).shape(m[x]);
  DimList box(bounds.size()), rest(bounds.size());
  for (size_t i = 0; i < inner.size(); ++i) {
    const int64_t begin = bounds[2 * i] - pads[2 * i], end = bounds[2 * i + 1] - pads[2 * i];
    box[2 * i] = std::clamp<int64_t>(begin, 0, inner[i]);
    box[2 * i + 1] = std::clamp<int64_t>(end, 0, inner[i]);
    rest[2 * i] = box[2 * i] - begin;
    rest[2 * i + 1] = end - box[2 * i + 1];
    if (box[2 * i] >= box[2 * i + 1]) return zeros(g, m);
  }
  return builder(m).pad(builder(m).shrink(m[x], box), rest);
}

Id both_flips(Graph& g, const Match& m) {
  DimList both = list(g, m[y]);
  const DimList outer = list(g, m.root);
  for (size_t i = 0; i < both.size(); ++i) both[i] ^= outer[i];
  return again(g, m, m[x], both);
}
bool flips_nothing(const Graph& g, const Match& m) {
  return all_of(list(g, m.root), 0);
}
// Flipping an axis of one element has no effect.
Id longer_flips(Graph& g, const Match& m) {
  const DimList from = builder(m).shape(m[x]);
  DimList flags = list(g, m.root);
  for (size_t i = 0; i < flags.size(); ++i)
    if (from[i] <= 1) flags[i] = 0;
  return again(g, m, m[x], flags);
}

// Axes in order, without those of size 1.
Id longer_axes(Graph& g, const Match& m) {
  const DimList from = builder(m).shape(m[x]);
  DimList axes = list(g, m.root);
  std::erase_if(axes, [&, first = true](int64_t axis) mutable {
    const bool is_op = first;
    first = false;
    return !is_op && from[static_cast<size_t>(axis)] == 1;
  });
  std::sort(axes.begin() + 1, axes.end());
  return again(g, m, m[x], axes);
}
bool reduces_nothing(const Graph& g, const Match& m) {
  return g.arg_list(m.root).size() == 1;
}
bool is_empty(const Graph&, const Match& m) {
  return builder(m).count(m[x]) == 0;
}
// The identity of Max.
Id lowest(Graph& g, DType dtype) {
  if (is_float(dtype)) return g.constant(dtype, -std::numeric_limits<double>::infinity());
  if (is_unsigned(dtype)) return g.constant(dtype, int64_t{0});
  const uint32_t bits = 8 * std::min<uint32_t>(size_of(dtype) == 0 ? 8 : size_of(dtype), 8);
  return g.constant(dtype, std::numeric_limits<int64_t>::min() >> (64 - bits));
}
Id identity(Graph& g, const Match& m) {
  const Op op = static_cast<Op>(g.arg_list(m.root)[0]);
  const DType dtype = g[m.root].dtype;
  const Id start =
      op == Op::Max ? lowest(g, dtype) : g.constant(dtype, int64_t{op == Op::Mul ? 1 : 0});
  return builder(m).filled(start, builder(m).shape(m.root));
}

constexpr Pattern below(Op op) {
  return as(y, node(op, x));
}

// clang-format off
constexpr Rule kViews[] = {
    rule("reshape-of-reshape", node(Op::Reshape, below(Op::Reshape)), code<of_inner>),
    rule("reshape-to-same",    node(Op::Reshape, x),                  x, when(check<keeps_shape>)),
    rule("permute-of-permute", node(Op::Permute, below(Op::Permute)), code<both_orders>),
    rule("permute-to-same",    node(Op::Permute, x),                  x, when(check<keeps_order>)),
    rule("permute-is-reshape", node(Op::Permute, x), code<as_reshape>,
         when(check<moves_ones_only>)),
    rule("expand-of-expand",   node(Op::Expand, below(Op::Expand)),   code<of_inner>),
    rule("expand-to-same",     node(Op::Expand, x),                   x, when(check<keeps_shape>)),
    rule("pad-by-nothing",     node(Op::Pad, x),                      x, when(check<pads_nothing>)),
    rule("pad-of-zeros", node(Op::Pad, x), code<zeros>, when(check<pads_zeros>)),
    rule("pad-of-pad",         node(Op::Pad, below(Op::Pad)),         code<both_pads>),
    rule("shrink-to-whole",    node(Op::Shrink, x),                   x, when(check<keeps_all>)),
    rule("shrink-of-shrink",   node(Op::Shrink, below(Op::Shrink)),   code<both_boxes>),
    rule("shrink-of-pad",      node(Op::Shrink, below(Op::Pad)),      code<pad_of_shrink>),
    rule("flip-of-flip",       node(Op::Flip, below(Op::Flip)),       code<both_flips>),
    rule("flip-of-ones",       node(Op::Flip, x),                     code<longer_flips>),
    rule("flip-nothing", node(Op::Flip, x), x, when(check<flips_nothing>)),
    rule("reduce-axes-of-one", node(Op::Reduce, x),                   code<longer_axes>),
    rule("reduce-no-axis", node(Op::Reduce, x), x, when(check<reduces_nothing>)),
    rule("reduce-of-nothing", node(Op::Reduce, x), code<identity>, when(check<is_empty>)),
};
// clang-format on
}  // namespace

std::span<const Rule> view_rules() {
  return kViews;
}
const RuleTable& view_table() {
  static const RuleTable table(kViews);
  return table;
}

}  // namespace plugrad::schedule
