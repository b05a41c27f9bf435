// Dispatches schedule steps and implements swap, local, group and thread. Work-items are not
// peeled: a Local range runs past the end of its axis, where its stores are gated; in a Group
// reduction the work-items past the remainder contribute the identity.
#include <algorithm>
#include <set>
#include <utility>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/analysis/work_items.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// The work-item's number is the inner part of the index, so adjacent work-items access adjacent
// elements.
struct Spread {
  Id item;
  Id rounds = kNoId;  // a range, if the work-items pass over the axis more than once
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
  const std::vector<Id> before = to_vector(g.sources(kernel.sink));
  std::vector<Id> stores;
  for (Id store : before) {
    const bool runs = open.depends(store, range);
    stores.push_back(runs ? at(g, store, range, index) : store);
    if (runs && gate != kNoId) stores.back() = with_gate(g, stores.back(), gate);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, stores);
}

// The remainder, fewer elements than work-items: the others get the identity.
Id remainder_value(Graph& g, Op op, Id value, Id range, Id item, int64_t rest) {
  const Id first = g.index(range_size(g, range) - rest);
  const Id gate = g.binary(Op::CmpLt, item, g.index(rest));
  OpenRanges open(g);
  value = gate_loads(g, open, at(g, value, range, g.binary(Op::Add, item, first)), gate);
  return g.where(gate, value, reduce_identity(g, op, g[value].dtype));
}

// Each work-item reduces its part; a Reduce over the work-items follows.
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
    const Id tail = remainder_value(g, op, value, range, item, rest);
    partial = g.binary(op, partial, make_reduce(g, op, {&tail, 1}, others));
  }
  return make_reduce(g, op, {&partial, 1}, {&item, 1});
}

// Bytes of one row for each dtype that the work-items reduce together; all dtypes get equal shares.
uint64_t local_bytes(const Kernel& kernel, int64_t items) {
  std::set<DType> dtypes;
  for (Id reduce : nodes_of(kernel.graph, kernel.sink, Op::Reduce))
    if (is_group_reduce(kernel.graph, reduce)) dtypes.insert(kernel.graph[reduce].dtype);
  uint64_t widest = 4;  // bytes; small dtypes may be reduced as 32 bits
  for (DType dtype : dtypes) widest = std::max<uint64_t>(widest, size_of(dtype));
  uint64_t copied = 0;
  for (Id filled : nodes_of(kernel.graph, kernel.sink, Op::Filled))
    if (is_local(kernel.graph, filled)) copied += bytes_of_copy(kernel.graph, filled);
  return dtypes.size() * widest * static_cast<uint64_t>(items) + copied;
}

// Why the device cannot run so many groups; empty if it can.
std::string excess(const Kernel& kernel) {
  const pgr_device_caps& caps = *kernel.caps;
  OpenRanges open(kernel.graph);
  const std::vector<WorkItemAxis> axes = work_item_axes(kernel, open);
  if (axes.size() > 3) return "a group has at most 3 axes";
  int64_t items = 1;
  for (size_t i = 0; i < axes.size(); ++i) {
    items *= axes[i].size;
    if (axes[i].size > caps.max_local_size[i])
      return fmt::format("a group of {} work-items along axis {}, the device allows {}",
                         axes[i].size, i, caps.max_local_size[i]);
  }
  if (items > caps.max_local_total)
    return fmt::format("a group of {} work-items, the device allows {}", items,
                       caps.max_local_total);
  if (const uint64_t bytes = local_bytes(kernel, items); bytes > caps.local_bytes)
    return fmt::format("what {} work-items share needs {} bytes of local memory, the device has {}",
                       items, bytes, caps.local_bytes);
  return {};
}

void spread(Kernel& kernel, const ScheduleStep& change) {
  check_split(kernel, change);
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  const Id item = make_range(g, change.amount, new_axis(kernel),
                             change.kind == Kind::Local ? AxisKind::Local : AxisKind::Group);
  if (change.kind == Kind::Local)
    spread_output(kernel, range, item);
  else
    change_closing(kernel, range,
                   [&](Id reduce) { return spread_one_reduce(g, reduce, range, item); });
  replace(kernel, {});
}

void swap_axes(Kernel& kernel, const ScheduleStep& change) {
  const auto other = static_cast<size_t>(change.amount);
  require(change.amount >= 0 && other < kernel.axes.size(), "[codegen] {}: there are {} axes",
          to_string({change}), kernel.axes.size());
  const Graph& g = kernel.graph;
  require(is_output_axis(range_kind(g[kernel.axes[change.axis]])) ==
              is_output_axis(range_kind(g[kernel.axes[other]])),
          "[codegen] {}: an output axis and a reduce axis cannot change places",
          to_string({change}));
  std::vector<Id> order = kernel.axes;
  std::swap(order[change.axis], order[other]);
  renumber(kernel, order);
}

// The outermost loop of a store; kNoId for none.
Id outermost_loop_of(const Kernel& kernel, OpenRanges& open, Id store) {
  for (Id axis : kernel.axes)
    if (range_kind(kernel.graph[axis]) == AxisKind::Loop && open.depends(store, axis)) return axis;
  return kNoId;
}

// Whether the store would refill an array in every iteration of the loop that now fills it once.
bool copies_again(const Kernel& kernel, OpenRanges& open, Id store, Id loop) {
  if (loop == kNoId) return false;
  const std::vector<Id> arrays = nodes_of(kernel.graph, store, Op::Filled);
  return std::ranges::any_of(arrays, [&](Id filled) { return !open.depends(filled, loop); });
}

// Elements that a store writes, with expanded axes.
double elements_of_store(const Kernel& kernel, OpenRanges& open, Id store) {
  double count = 1;
  for (Id range : open.members(open[store]))
    count *= static_cast<double>(range_size(kernel.graph, range));
  return count;
}

// Whether a store that the range does not run over (a remainder) gets a group of its own: its
// outermost loop is longer than the range, and stores of the range run over it too. If the
// remainder took that loop for the groups, most groups would idle once the loop becomes a group id
// of the others.
bool wants_own_group(const Kernel& kernel, OpenRanges& open, Id store, Id loop, Id range) {
  const Graph& g = kernel.graph;
  if (loop == kNoId || range_size(g, loop) <= range_size(g, range)) return false;
  const double elements = elements_of_store(kernel, open, store);
  const auto has_larger_share = [&](Id other) {
    return open.depends(other, range) && open.depends(other, loop) &&
           elements_of_store(kernel, open, other) >=
               elements * static_cast<double>(range_size(g, range));
  };
  return std::ranges::any_of(g.sources(kernel.sink), has_larger_share);
}

// Turns the axis into a group id. A store that does not depend on it (a remainder, a border) runs
// its own outermost loop over the same groups, or in a group of its own; one without a loop runs in
// the first group.
void make_global(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const Id range = kernel.axes[change.axis];
  OpenRanges open(g);
  const bool runs = std::ranges::any_of(g.sources(kernel.sink),
                                        [&](Id store) { return open.depends(store, range); });
  require(runs && range_kind(g[range]) == AxisKind::Loop, "[codegen] {}: axis {} is no output loop",
          to_string({change}), change.axis);
  const std::vector<Id> stores = to_vector(g.sources(kernel.sink));
  std::vector<Id> loops;
  std::vector<bool> own;  // stores in a group of their own, after the others
  int64_t groups = 1, alone = 0;
  for (Id store : stores) {
    loops.push_back(open.depends(store, range) ? range : outermost_loop_of(kernel, open, store));
    own.push_back(!open.depends(store, range) &&
                  (copies_again(kernel, open, store, loops.back()) ||
                   wants_own_group(kernel, open, store, loops.back(), range)));
    if (own.back()) {
      ++alone;
      continue;
    }
    require(loops.back() == kNoId || !is_bounded(g[loops.back()]),
            "[codegen] {}: a loop of another store has bounds", to_string({change}));
    if (loops.back() != kNoId) groups = std::max(groups, range_size(g, loops.back()));
  }
  int64_t number = std::exchange(groups, groups + alone);
  const Id global = make_range(g, groups, range_axis(g[range]), AxisKind::Global);
  std::vector<Id> changed;
  for (size_t i = 0; i < stores.size(); ++i) {
    if (own[i]) {
      changed.push_back(with_gate(g, stores[i], g.binary(Op::CmpEq, global, g.index(number++))));
      continue;
    }
    const int64_t size = loops[i] == kNoId ? 1 : range_size(g, loops[i]);
    Id store = loops[i] == kNoId ? stores[i] : at(g, stores[i], loops[i], global);
    if (size < groups) store = with_gate(g, store, g.binary(Op::CmpLt, global, g.index(size)));
    changed.push_back(store);
  }
  kernel.sink = g.add(Op::Sink, DType::Void, changed);
  compact(kernel);
}

// A range with bounds runs only some iterations, but the step's values and copies cover all.
void check_bounds(const Kernel& kernel, const ScheduleStep& change) {
  if (change.names_parameter() || change.kind == Kind::Swap) return;
  const std::string text = to_string({change});
  require(range_kind(kernel.graph[kernel.axes[change.axis]]) != AxisKind::Block,
          "[codegen] {}: axis {} is serial", text, change.axis);
  const bool bounded = is_bounded(kernel.graph[kernel.axes[change.axis]]);
  require(!bounded, "[codegen] {}: axis {} has bounds", text, change.axis);
  require(change.kind == Kind::Thread || may_split(kernel, change.axis),
          "[codegen] {}: another axis is bounded by axis {}", text, change.axis);
}

// The factor by which the device could launch more groups, at least 1.
int64_t room_for_groups(const Kernel& kernel) {
  double most = 1, groups = 1;
  for (const uint64_t along_axis : kernel.caps->max_groups)
    most *= along_axis == 0 ? 0x1p32 : static_cast<double>(along_axis);
  for (Id range : kernel.axes)
    if (range_kind(kernel.graph[range]) == AxisKind::Global)
      groups *= static_cast<double>(range_size(kernel.graph, range));
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(most / groups, 0x1p62)));
}

}  // namespace

void apply(Kernel& kernel, const ScheduleStep& change) {
  require(change.names_parameter() || change.axis < kernel.axes.size(),
          "[codegen] {}: the kernel has {} axes", to_string({change}), kernel.axes.size());
  check_beside_tensor_core(kernel, change);
  check_bounds(kernel, change);
  check_beside_local_copies(kernel, change);
  switch (change.kind) {
    case Kind::CacheRead: {
      if (!works_in_groups(*kernel.caps)) {
        is_written(kernel, change.axis) ? cache_write(kernel, change) : cache_read(kernel, change);
        break;
      }
      cache_read_local(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    case Kind::SplitK:
      split_k(kernel, change);
      break;
    case Kind::ComputeAt:
      compute_at(kernel, change);
      break;
    case Kind::Pipeline: {
      pipeline_copies(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    case Kind::Swap:
      swap_axes(kernel, change);
      break;
    case Kind::TensorCore: {
      use_tensor_core(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    case Kind::Thread:
      make_global(kernel, change);
      break;
    case Kind::Local:
    case Kind::Group: {
      spread(kernel, change);
      const std::string problem = excess(kernel);
      require(problem.empty(), "[codegen] {}: {}", to_string({change}), problem);
      break;
    }
    default:
      split(kernel, change);
      break;
  }
  check_compute_at(kernel, change);
  kernel.applied.push_back(change);
}

void apply_if_it_fits(Kernel& kernel, const ScheduleStep& change) {
  Kernel trial = copy_of(kernel);
  spread(trial, change);
  if (!excess(trial).empty()) return;
  trial.applied.push_back(change);
  kernel = std::move(trial);
}

bool apply_thread(Kernel& kernel, size_t axis) {
  const int64_t room = room_for_groups(kernel), size = range_size(kernel.graph, kernel.axes[axis]);
  const ScheduleStep thread{ScheduleStep::Kind::Thread, static_cast<uint32_t>(axis), 0};
  if (size <= room) {
    apply(kernel, thread);
    return true;
  }
  int64_t inside = (size + room - 1) / room;
  while (size % inside != 0) ++inside;  // a remainder would bring loops, and so groups, of its own
  if (inside == size) return false;
  const auto change = [&](Kernel& trial) {
    apply(trial, {ScheduleStep::Kind::Block, thread.axis, inside});
    apply(trial, thread);
    return axis;
  };
  return attempt(kernel, change).has_value();
}

}  // namespace plugrad::codegen
