// upcast, unroll, vectorize and block replace range r of size n by outer*amount + inner. A schedule
// step, no local rewrite. If amount does not divide n the remainder is peeled: a second copy of the
// store (or of the reduction) covers the last n mod amount elements, so the main part needs no
// gates.
//   before   store %out[%r], f(%r)                        %r = range 35
//   after    store %out[%o*16 + %i], f(%o*16 + %i)        %o = range 2, %i = range 16 vector
//            store %out[32 + %t], f(32 + %t)              %t = range 3 vector
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

struct Split {
  Id main_index = kNoId,
     tail_index = kNoId;  // replacements of the range; tail: kNoId if the amount divides
  std::vector<Id> main_ranges, tail_ranges;
};

// Inner ranges get new axis numbers; the outer one keeps the range's number and position.
Split split_range(Graph& g, Id range, int64_t amount, AxisKind inner_kind, uint32_t inner_axis) {
  const int64_t size = range_size(g, range), outer = size / amount, rest = size % amount;
  const uint32_t axis = range_axis(g[range]);
  Split split;
  if (outer > 0) {
    const Id inner = make_range(g, amount, inner_axis, inner_kind);
    split.main_ranges = {inner};
    split.main_index = inner;
    if (outer > 1) {
      const Id outer_range = make_range(g, outer, axis, range_kind(g[range]));
      split.main_ranges.insert(split.main_ranges.begin(), outer_range);
      split.main_index = g.binary(Op::Add, g.binary(Op::Mul, outer_range, g.index(amount)), inner);
    }
  }
  if (rest == 1 && outer > 0) {
    split.tail_index = g.index(outer * amount);
  } else if (rest > 0) {
    const Id inner = make_range(g, rest, inner_axis + 1, inner_kind);
    split.tail_ranges = {inner};
    split.tail_index = outer == 0 ? inner : g.binary(Op::Add, inner, g.index(outer * amount));
    if (outer == 0) {
      split.main_ranges.swap(split.tail_ranges);
      std::swap(split.main_index, split.tail_index);
    }
  }
  return split;
}

// The stores; those that run over the range are listed twice if there is a remainder.
std::vector<Id> split_stores(Graph& g, std::span<const Id> before, Id range, const Split& split) {
  OpenRanges open(g);
  std::vector<Id> stores;
  for (Id store : std::vector<Id>(before.begin(), before.end())) {
    if (!open.depends(store, range)) {
      stores.push_back(store);
      continue;
    }
    stores.push_back(at(g, store, range, split.main_index));
    if (split.tail_index != kNoId) stores.push_back(at(g, store, range, split.tail_index));
  }
  return stores;
}

Id split_filled(Graph& g, Id filled, Id range, const Split& split) {
  const FilledParts parts = filled_parts(g, filled);
  std::vector<Id> ranges;
  for (Id r : parts.ranges)
    if (r != range) ranges.push_back(r);
  ranges.insert(ranges.end(), split.main_ranges.begin(), split.main_ranges.end());
  ranges.insert(ranges.end(), split.tail_ranges.begin(), split.tail_ranges.end());
  return make_filled(g, split_stores(g, parts.stores, range, split), ranges);
}

Id split_one_reduce(Graph& g, Id reduce, Id range, const Split& split) {
  const ReduceParts parts = reduce_parts(g, reduce);
  const std::vector<Id> values = to_vector(parts.values);
  const std::vector<Id> ranges = to_vector(parts.ranges);
  const Op op = parts.op;
  const auto part = [&](Id index, const std::vector<Id>& instead) {
    std::vector<Id> new_values, new_ranges;
    for (Id v : values) new_values.push_back(at(g, v, range, index));
    for (Id r : ranges)
      if (r != range) new_ranges.push_back(r);
    new_ranges.insert(new_ranges.end(), instead.begin(), instead.end());
    return make_reduce(g, op, new_values, new_ranges);
  };
  const Id main = part(split.main_index, split.main_ranges);
  if (split.tail_index == kNoId) return main;
  return g.binary(op, main, part(split.tail_index, split.tail_ranges));
}

AxisKind inner_kind(const ScheduleStep& change, AxisKind now) {
  switch (change.kind) {
    case Kind::Upcast:
      return AxisKind::Upcast;
    case Kind::Unroll:
      return AxisKind::Unroll;
    case Kind::Vectorize:
      return AxisKind::Vector;
    case Kind::Local:
      return AxisKind::Local;
    case Kind::Group:
      return AxisKind::Group;
    default:
      return now;
  }
}

// Whether some value runs along both ranges, which then cannot both be lanes. A reduction runs
// along a range that it closes even if its values do not vary along it.
bool vary_together(const Kernel& kernel, OpenRanges& open, Id a, Id b) {
  const Graph& g = kernel.graph;
  Reachable reachable;
  const RangeSet both = open.bit(a) | open.bit(b);
  return std::ranges::any_of(reachable.from(g, std::span(&kernel.sink, 1)), [&](Id id) {
    if (g[id].op == Op::Sink) return false;
    RangeSet along = open[id];
    if (g[id].op == Op::Reduce)
      for (Id range : reduce_parts(g, id).ranges) along = along | open.bit(range);
    return (along & both) == both;
  });
}

}  // namespace

bool meets_lanes(const Kernel& kernel, Id range) {
  OpenRanges open(kernel.graph);
  return std::ranges::any_of(kernel.axes, [&](Id axis) {
    return range_kind(kernel.graph[axis]) == AxisKind::Vector &&
           vary_together(kernel, open, axis, range);
  });
}

bool fills_arrays(const Kernel& kernel, Id range) {
  OpenRanges open(kernel.graph);
  return std::ranges::any_of(nodes_of(kernel.graph, kernel.sink, Op::Filled),
                             [&](Id filled) { return open.depends(filled, range); });
}

void check_split(const Kernel& kernel, const ScheduleStep& change) {
  const Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const AxisKind kind = range_kind(g[range]);
  const std::string text = to_string({change});
  require(change.amount >= 1 && change.amount <= range_size(g, range),
          "[codegen] {}: axis {} has size {}", text, change.axis, range_size(g, range));
  if (change.kind == Kind::Block)
    require(kind == AxisKind::Loop || kind == AxisKind::Reduce, "[codegen] {}: axis {} is no loop",
            text, change.axis);
  if (change.kind == Kind::Upcast || change.kind == Kind::Local)
    require(kind == AxisKind::Loop, "[codegen] {}: axis {} is no output loop", text, change.axis);
  if (change.kind == Kind::Local || change.kind == Kind::Group)
    require(nodes_of(g, kernel.sink, Op::Filled).empty(), "[codegen] {}: not after a stage", text);
  if (change.kind == Kind::Unroll || change.kind == Kind::Group)
    require(kind == AxisKind::Reduce, "[codegen] {}: axis {} is no reduce loop", text, change.axis);
  if (change.kind == Kind::Vectorize) {
    require(kind == AxisKind::Loop || kind == AxisKind::Reduce, "[codegen] {}: axis {} is no loop",
            text, change.axis);
    require(!fills_arrays(kernel, range),
            "[codegen] {}: an array is filled in each iteration of axis {}", text, change.axis);
    require(!meets_lanes(kernel, range),
            "[codegen] {}: a value along the axis has a vector axis already", text);
  }
  if (change.kind == Kind::Local || change.kind == Kind::Group)
    require(kernel.caps->has_local != 0, "[codegen] {}: the device has no groups of work-items",
            text);
}

void split(Kernel& kernel, const ScheduleStep& change) {
  check_split(kernel, change);
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const bool output = range_kind(g[range]) == AxisKind::Loop;
  const Split parts = split_range(g, range, change.amount, inner_kind(change, range_kind(g[range])),
                                  new_axis(kernel));
  if (output)
    kernel.sink =
        g.add(Op::Sink, DType::Void, split_stores(g, g.sources(kernel.sink), range, parts));
  change_closing(kernel, range, [&](Id id) {
    return g[id].op == Op::Filled ? split_filled(g, id, range, parts)
                                  : split_one_reduce(g, id, range, parts);
  });
  replace(kernel, {});
}

}  // namespace plugrad::codegen
