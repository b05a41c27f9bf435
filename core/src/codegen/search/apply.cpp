// A split replaces range r of n by outer*amount + inner. Where amount does not divide n the rest is
// peeled: a second copy of the store (or of the reduction) runs over the last n mod amount
// elements, so that the main part needs no gates.
//   before   store %out[%r], f(%r)                        %r = range 35
//   after    store %out[%o*16 + %i], f(%o*16 + %i)        %o = range 2, %i = range 16 vector
//            store %out[32 + %t], f(32 + %t)              %t = range 3 vector
// Work-items do not peel. A Local range runs past the end of its axis, where its stores are gated;
// in a reduction over a Group range the items past the rest add nothing to it.
#include "codegen/search/apply.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "codegen/access.h"
#include "codegen/gates.h"
#include "codegen/search/tensor_core.h"
#include "codegen/work_items.h"
#include "symbolic/symbolic.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = Optimisation::Kind;

struct Split {
  Id main_index = kNoId, tail_index = kNoId;       // what stands for the range; tail: kNoId when it divides
  std::vector<Id> main_ranges, tail_ranges;
};

// The inner ranges take new axis numbers; the outer one keeps the number, and so the place, of the range.
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

Id at(Graph& g, Id root, Id range, Id index) {
  const std::pair<Id, Id> map[] = {{range, index}};
  return substitute(g, root, map);
}

void split_output(Kernel& kernel, Id range, const Split& split) {
  Graph& g = kernel.graph;
  OpenRanges open(g);
  std::vector<Id> stores;
  for (Id store : g.sources(kernel.sink)) {
    if (!open.depends(store, range)) {
      stores.push_back(store);
      continue;
    }
    stores.push_back(at(g, store, range, split.main_index));
    if (split.tail_index != kNoId) stores.push_back(at(g, store, range, split.tail_index));
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
}

Id split_one_reduce(Graph& g, Id reduce, Id range, const Split& split) {
  const ReduceParts parts = reduce_parts(g, reduce);
  const std::vector<Id> values(parts.values.begin(), parts.values.end());
  const std::vector<Id> ranges(parts.ranges.begin(), parts.ranges.end());
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

bool closes(const Graph& g, Id reduce, Id range) {
  const auto ranges = reduce_parts(g, reduce).ranges;
  return std::ranges::find(ranges, range) != ranges.end();
}

// A Reduce over items of a Reduce over other items is one over both.
Id with_inner_items(Graph& g, Id reduce) {
  if (!is_group_reduce(g, reduce)) return reduce;
  const ReduceParts outer = reduce_parts(g, reduce);
  if (!is_group_reduce(g, outer.values[0])) return reduce;
  const ReduceParts inner = reduce_parts(g, outer.values[0]);
  if (inner.op != outer.op) return reduce;
  const Op op = outer.op;
  std::vector<Id> ranges(outer.ranges.begin(), outer.ranges.end());
  ranges.insert(ranges.end(), inner.ranges.begin(), inner.ranges.end());
  const Id value = inner.values[0];
  return make_reduce(g, op, {&value, 1}, ranges);
}

// Every Reduce that closes the range becomes what `change` makes of it.
template <class Change>
void change_reduces(Kernel& kernel, Id range, Change change) {
  Graph& g = kernel.graph;
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&kernel.sink, 1));
  std::vector<Id> now(kernel.sink + 1, kNoId);
  std::vector<Id> sources;
  for (Id id : nodes) {
    sources.clear();
    for (Id s : g.sources(id)) sources.push_back(now[s]);
    const Id rebuilt = g.with_sources(id, sources);
    const bool changes = g[rebuilt].op == Op::Reduce && closes(g, rebuilt, range);
    now[id] = changes ? change(rebuilt) : with_inner_items(g, rebuilt);
  }
  kernel.sink = now[kernel.sink];
}

// The work-item's number is the inner part of the index: neighbours work on neighbouring elements.
struct Spread {
  Id item;
  Id rounds = kNoId;  // a range, where the items pass over the axis more than once
  Id index;
};

Spread spread_range(Graph& g, Id range, Id item, int64_t rounds) {
  Spread spread{item, kNoId, item};
  if (rounds > 1) {
    spread.rounds = make_range(g, rounds, range_axis(g[range]), range_kind(g[range]));
    const Id first = g.binary(Op::Mul, spread.rounds, g.index(range_size(g, item)));
    spread.index = g.binary(Op::Add, first, item);
  }
  return spread;
}

void spread_output(Kernel& kernel, Id range, Id item) {
  Graph& g = kernel.graph;
  const int64_t size = range_size(g, range), amount = range_size(g, item);
  const Id index = spread_range(g, range, item, (size + amount - 1) / amount).index;
  const Id gate = size % amount == 0 ? kNoId : g.binary(Op::CmpLt, index, g.index(size));
  OpenRanges open(g);
  const std::vector<Id> before(g.sources(kernel.sink).begin(), g.sources(kernel.sink).end());
  std::vector<Id> stores;
  for (Id store : before) {
    const bool runs = open.depends(store, range);
    stores.push_back(runs ? at(g, store, range, index) : store);
    if (runs && gate != kNoId) stores.back() = with_gate(g, stores.back(), gate);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
}

// The last elements, fewer than there are items: the items past them have the identity.
Id rest_value(Graph& g, Op op, Id value, Id range, Id item, int64_t rest) {
  const Id first = g.index(range_size(g, range) - rest);
  const Id gate = g.binary(Op::CmpLt, item, g.index(rest));
  OpenRanges open(g);
  value = gate_loads(g, open, at(g, value, range, g.binary(Op::Add, item, first)), gate);
  return g.where(gate, value, reduce_identity(g, op, g[value].dtype));
}

// Each item reduces its part; a Reduce over the items follows.
Id spread_one_reduce(Graph& g, Id reduce, Id range, Id item) {
  const ReduceParts parts = reduce_parts(g, reduce);
  const Op op = parts.op;
  const Id value = parts.values[0];
  const int64_t amount = range_size(g, item), rest = range_size(g, range) % amount;
  std::vector<Id> others;
  for (Id r : parts.ranges)
    if (r != range) others.push_back(r);
  const Spread spread = spread_range(g, range, item, range_size(g, range) / amount);
  std::vector<Id> ranges = others;
  if (spread.rounds != kNoId) ranges.push_back(spread.rounds);
  const Id main = at(g, value, range, spread.index);
  Id partial = make_reduce(g, op, {&main, 1}, ranges);
  if (rest != 0) {
    const Id tail = rest_value(g, op, value, range, item, rest);
    partial = g.binary(op, partial, make_reduce(g, op, {&tail, 1}, others));
  }
  return make_reduce(g, op, {&partial, 1}, {&item, 1});
}

AxisKind inner_kind(const Optimisation& change) {
  switch (change.kind) {
    case Kind::Upcast: return AxisKind::Upcast;
    case Kind::Unroll: return AxisKind::Unroll;
    case Kind::Vectorize: return AxisKind::Vector;
    case Kind::Local: return AxisKind::Local;
    default: return AxisKind::Group;
  }
}

// Whether some value runs along both ranges, so that they cannot both be its lanes.
bool run_together(const Kernel& kernel, OpenRanges& open, Id a, Id b) {
  Reachable reachable;
  const uint64_t both = open.bit(a) | open.bit(b);
  return std::ranges::any_of(reachable.from(kernel.graph, std::span(&kernel.sink, 1)), [&](Id id) {
    const Op op = kernel.graph[id].op;
    return op != Op::Sink && (open[id] & both) == both;
  });
}

// Bytes that hold one row for each dtype that the work-items reduce together: each gets the same share.
uint64_t local_bytes(const Kernel& kernel, int64_t items) {
  std::set<DType> dtypes;
  for (Id reduce : nodes_of(kernel.graph, kernel.sink, Op::Reduce))
    if (is_group_reduce(kernel.graph, reduce)) dtypes.insert(kernel.graph[reduce].dtype);
  uint64_t widest = 4;  // small dtypes may be reduced as 32 bits
  for (DType dtype : dtypes) widest = std::max<uint64_t>(widest, size_of(dtype));
  return dtypes.size() * widest * static_cast<uint64_t>(items);
}

// Why the groups of the kernel are more than the device can run; empty where they are not.
std::string excess(const Kernel& kernel) {
  const pgr_device_caps& caps = *kernel.caps;
  OpenRanges open(kernel.graph);
  const std::vector<ItemAxis> axes = item_axes(kernel, open);
  if (axes.size() > 3) return "a group has at most 3 axes";
  int64_t items = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    items *= axes[i].size;
    if (axes[i].size > caps.max_local_size[i])
      return fmt::format("a group of {} work-items along axis {}, the device allows {}", axes[i].size, i,
                         caps.max_local_size[i]);
  }
  if (items > caps.max_local_total)
    return fmt::format("a group of {} work-items, the device allows {}", items, caps.max_local_total);
  if (const uint64_t bytes = local_bytes(kernel, items); bytes > caps.local_bytes)
    return fmt::format("reductions over {} work-items need {} bytes of local memory, the device has {}", items, bytes,
                       caps.local_bytes);
  return {};
}

void check_split(const Kernel& kernel, const Optimisation& change) {
  const Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const AxisKind kind = range_kind(g[range]);
  const std::string text = to_string({change});
  require(change.amount >= 1 && change.amount <= range_size(g, range), "[codegen] {}: axis {} has size {}",
          text, change.axis, range_size(g, range));
  if (change.kind == Kind::Upcast || change.kind == Kind::Local)
    require(kind == AxisKind::Loop, "[codegen] {}: axis {} is no output loop", text, change.axis);
  if (change.kind == Kind::Unroll || change.kind == Kind::Group)
    require(kind == AxisKind::Reduce, "[codegen] {}: axis {} is no reduce loop", text, change.axis);
  if (change.kind == Kind::Vectorize) {
    require(kind == AxisKind::Loop || kind == AxisKind::Reduce, "[codegen] {}: axis {} is no loop", text,
            change.axis);
    OpenRanges open(g);
    for (Id axis : kernel.axes)
      require(range_kind(g[axis]) != AxisKind::Vector || !run_together(kernel, open, axis, range),
              "[codegen] {}: what runs along the axis has a vector axis already", text);
  }
  if (change.kind == Kind::Local || change.kind == Kind::Group)
    require(kernel.caps->has_local != 0, "[codegen] {}: the device has no groups of work-items",
            text);
}

// New numbers are larger than all others, so they are unique.
uint32_t new_axis(const Kernel& kernel) {
  uint32_t last = 0;
  for (Id axis : kernel.axes) last = std::max(last, range_axis(kernel.graph[axis]));
  return last + 1;
}

void split(Kernel& kernel, const Optimisation& change) {
  check_split(kernel, change);
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const bool output = range_kind(g[range]) == AxisKind::Loop;
  const Split parts = split_range(g, range, change.amount, inner_kind(change), new_axis(kernel));
  if (output) split_output(kernel, range, parts);
  else
    change_reduces(kernel, range,
                   [&](Id reduce) { return split_one_reduce(g, reduce, range, parts); });
  replace(kernel, {});
}

void spread(Kernel& kernel, const Optimisation& change) {
  check_split(kernel, change);
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const Id item = make_range(g, change.amount, new_axis(kernel), inner_kind(change));
  if (change.kind == Kind::Local)
    spread_output(kernel, range, item);
  else
    change_reduces(kernel, range,
                   [&](Id reduce) { return spread_one_reduce(g, reduce, range, item); });
  replace(kernel, {});
}

// Gives the axes the numbers of their places in `order`.
void renumber(Kernel& kernel, const std::vector<Id>& order) {
  Graph& g = kernel.graph;
  std::vector<std::pair<Id, Id>> map;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const Id now = make_range(g, range_size(g, order[i]), i, range_kind(g[order[i]]));
    if (now != order[i]) map.emplace_back(order[i], now);
  }
  replace(kernel, map);
}

void swap_axes(Kernel& kernel, const Optimisation& change) {
  const auto other = static_cast<size_t>(change.amount);
  require(change.amount >= 0 && other < kernel.axes.size(), "[codegen] {}: there are {} axes",
          to_string({change}), kernel.axes.size());
  const Graph& g = kernel.graph;
  require(is_output_axis(range_kind(g[kernel.axes[change.axis]])) ==
              is_output_axis(range_kind(g[kernel.axes[other]])),
          "[codegen] {}: an output axis and a reduce axis cannot change places", to_string({change}));
  std::vector<Id> order = kernel.axes;
  std::swap(order[change.axis], order[other]);
  renumber(kernel, order);
}

// The outermost loop of a store; kNoId where it has none.
Id outermost_loop(const Kernel& kernel, OpenRanges& open, Id store) {
  for (Id axis : kernel.axes)
    if (range_kind(kernel.graph[axis]) == AxisKind::Loop && open.depends(store, axis)) return axis;
  return kNoId;
}

// The axis becomes a group id. A store that does not depend on it (a rest, a border) gives its own outermost loop to
// the same groups; one without a loop runs in the first group.
void make_global(Kernel& kernel, const Optimisation& change) {
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  require(range_kind(g[range]) == AxisKind::Loop, "[codegen] {}: axis {} is no output loop",
          to_string({change}), change.axis);
  OpenRanges open(g);
  const std::vector<Id> stores(g.sources(kernel.sink).begin(), g.sources(kernel.sink).end());
  std::vector<Id> loops;
  int64_t groups = 1;
  for (Id store : stores) {
    loops.push_back(open.depends(store, range) ? range : outermost_loop(kernel, open, store));
    if (loops.back() != kNoId) groups = std::max(groups, range_size(g, loops.back()));
  }
  const Id global = make_range(g, groups, range_axis(g[range]), AxisKind::Global);
  std::vector<Id> changed;
  for (size_t i = 0; i < stores.size(); ++i) {
    const int64_t size = loops[i] == kNoId ? 1 : range_size(g, loops[i]);
    Id store = loops[i] == kNoId ? stores[i] : at(g, stores[i], loops[i], global);
    if (size < groups) store = with_gate(g, store, g.binary(Op::CmpLt, global, g.index(size)));
    changed.push_back(store);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, changed);
  compact(kernel);
}

}  // namespace

void apply(Kernel& kernel, const Optimisation& change) {
  require(change.axis < kernel.axes.size(), "[codegen] {}: the kernel has {} axes", to_string({change}),
          kernel.axes.size());
  check_beside_tensor_core(kernel, change);
  switch (change.kind) {
    case Kind::Swap: swap_axes(kernel, change); break;
    case Kind::TensorCore: {
      use_tensor_core(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    case Kind::Thread: make_global(kernel, change); break;
    case Kind::Local:
    case Kind::Group: {
      spread(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    default: split(kernel, change); break;
  }
  kernel.applied.push_back(change);
}

void apply_if_it_fits(Kernel& kernel, const Optimisation& change) {
  Kernel trial;
  trial.caps = kernel.caps;
  trial.options = kernel.options;
  trial.param_count = kernel.param_count;
  trial.applied = kernel.applied;
  trial.sink = copy_into(trial.graph, kernel.graph, kernel.sink);
  compact(trial);
  spread(trial, change);
  if (!excess(trial).empty()) return;
  trial.applied.push_back(change);
  kernel = std::move(trial);
}

}  // namespace plugrad::codegen
