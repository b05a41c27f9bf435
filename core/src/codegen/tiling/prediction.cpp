// Predicts the time of a scheduled kernel: each nest of loops is a tile for the cost model.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "codegen/analysis/access.h"
#include "codegen/analysis/predication.h"
#include "codegen/tiling/cost_model.h"
#include "codegen/tiling/row_kernels.h"
#include "ir/facts.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

// Copies of an instruction; schedules from users may ask for any number. Chosen, not measured.
constexpr double kMostPredictedCopies = 1024;

// The expansion of a kernel's axes, by axis number.
struct Expansion {
  std::set<uint32_t> expanded, lanes;
};

// Restores the axes before the schedule and returns their expansion.
Expansion restore_axes(Kernel& part) {
  Expansion out;
  std::set<Id> closed;
  for (Id reduce : nodes_of(part.graph, part.sink, Op::Reduce))
    for (Id range : reduce_parts(part.graph, reduce).ranges) closed.insert(range);
  std::vector<std::pair<Id, Id>> plain;
  for (Id axis : part.axes) {
    const AxisKind kind = range_kind(part.graph[axis]);
    const uint32_t number = range_axis(part.graph[axis]);
    if (is_expanded(kind)) out.expanded.insert(number);
    if (kind == AxisKind::Vector) out.lanes.insert(number);
    const AxisKind before = closed.contains(axis) ? AxisKind::Reduce : AxisKind::Loop;
    const Id range = make_range(part.graph, range_size(part.graph, axis), number, before);
    if (range != axis) plain.emplace_back(axis, range);
  }
  replace(part, plain);
  return out;
}

// Sums over other loops than the longest one, e.g. the remainder of a split, are separate nests.
std::vector<Kernel> take_other_sums(Kernel& nest) {
  Graph& g = nest.graph;
  std::vector<Id> sums;
  for (Id reduce : nodes_of(g, nest.sink, Op::Reduce)) {
    const auto is_inside = [&](Id other) { return depends_on(g, other, reduce); };
    if (const std::vector<Id> all = nodes_of(g, nest.sink, Op::Reduce);
        std::ranges::count_if(all, is_inside) == 1)
      sums.push_back(reduce);
  }
  const auto iterations = [&](Id reduce) {
    double count = 1;
    for (Id range : reduce_parts(g, reduce).ranges)
      count *= static_cast<double>(range_size(g, range));
    return count;
  };
  const auto longest = std::ranges::max_element(sums, {}, iterations);
  std::vector<Kernel> out;
  std::vector<std::pair<Id, Id>> loads;
  if (sums.size() < 2) return out;
  OpenRanges open(g);
  const std::vector<Id> of_longest(reduce_parts(g, *longest).ranges.begin(),
                                   reduce_parts(g, *longest).ranges.end());
  for (Id sum : sums) {
    if (std::ranges::equal(reduce_parts(g, sum).ranges, of_longest)) continue;
    const std::vector<Id> around = open.members(open[sum]);
    int64_t count = 1;
    for (Id range : around) count *= range_size(g, range);
    const Id place = param_for(nest, sum, static_cast<uint32_t>(out.size()), count),
             at = index_of(g, around);
    out.push_back(part_of(nest, g.add(Op::Store, DType::Void, {place, at, sum})));
    loads.emplace_back(sum, g.add(Op::Load, g[sum].dtype, {place, at}));
  }
  replace(nest, loads);
  return out;
}

// Adds the loops that surround nests without sums of their own.
void add_loops(Kernel& nest, const Expansion& expansion, double times, Prediction& out) {
  const CostModel model(nest);
  Tile tile;
  int64_t lanes = 0;
  for (size_t axis = 0; axis < nest.axes.size(); ++axis) {
    const uint32_t number = range_axis(nest.graph[nest.axes[axis]]);
    const int64_t size = size_of_axis(nest, axis);
    tile.amounts.push_back(expansion.expanded.contains(number) ? size : 1);
    tile.outer.push_back(tile.amounts.back() > 1 ? model.outer_part(axis) : SIZE_MAX);
    if (!expansion.lanes.contains(number) || size <= lanes) continue;
    tile.vector_axis = axis;
    lanes = size;
  }
  out.is_possible &= model.code_size(tile) <= kMostPredictedCopies && model.fits_registers(tile);
  out.is_trusted &= !is_too_much_code(model, tile) &&
                    static_cast<double>(model.streams(tile)) <= nest.machine().streams;
  out.cycles.add(model.cycles(tile), times);
  out.registers = std::max(out.registers, model.registers(tile));
}

// Adds one nest of loops that runs `times`.
void add_nest(Kernel& nest, const Expansion& expansion, double times, Prediction& out) {
  for (Kernel& sum : take_other_sums(nest)) add_loops(sum, expansion, times, out);
  add_loops(nest, expansion, times, out);
}

// Adds a store's nest, or one nest per pass for a row kernel.
void add_rows(Kernel& part, const Expansion& expansion, Prediction& out) {
  RowKernels rows = row_kernels(part, expansion.expanded);
  if (rows.parts.empty()) return add_nest(part, expansion, 1, out);
  double times = 1;
  for (Id axis : part.axes)
    if (rows.is_row_axis(range_axis(part.graph[axis])))
      times *= static_cast<double>(range_size(part.graph, axis));
  for (Kernel& nest : rows.parts) add_nest(nest, expansion, times, out);
}

// The loops of other arrays, except arrays filled from this one.
RangeSet loops_elsewhere(const Kernel& part, OpenRanges& open, Id filled) {
  const Graph& g = part.graph;
  RangeSet loops = 0;
  for (Id other : nodes_of(g, part.sink, Op::Filled)) {
    if (other != filled && depends_on(g, other, filled)) continue;
    for (Id store : filled_parts(g, other).stores) loops |= open[store] & ~open[other];
  }
  return loops;
}

// How often an array is filled with the same contents: it has one place, so loops that it does not
// depend on repeat the filling if they stand outside a loop that it depends on.
double repeats(const Kernel& part, const Expansion& expansion, OpenRanges& open, Id filled) {
  const Graph& g = part.graph;
  const std::vector<Id> around = open.members(open[filled]);
  const RangeSet elsewhere = loops_elsewhere(part, open, filled);
  const auto place = [&](Id range) {
    return std::pair(is_reduce_axis(range_kind(g[range])), range_axis(g[range]));
  };
  const auto is_loop = [&](Id range) { return !expansion.expanded.contains(range_axis(g[range])); };
  double count = 1;
  for (Id axis : part.axes) {
    const bool is_outside = std::ranges::any_of(
        around, [&](Id range) { return is_loop(range) && place(axis) < place(range); });
    if (is_outside && is_loop(axis) && ((open[filled] | elsewhere) & open.bit(axis)) == 0)
      count *= static_cast<double>(range_size(g, axis));
  }
  return count;
}

// All work of an operand's copy is packing.
void add_filling(Kernel& filling, const Expansion& expansion, double times, Prediction& out) {
  Prediction alone;
  if (nodes_of(filling.graph, filling.sink, Op::Reduce).empty()) {
    add_nest(filling, expansion, 1, alone);
    alone.cycles = {.packing = alone.cycles.all, .all = alone.cycles.all};
  } else {
    add_rows(filling, expansion, alone);
    out.registers = std::max(out.registers, alone.registers);
    out.is_trusted &= alone.is_trusted;
  }
  out.is_possible &= alone.is_possible;
  out.cycles.add(alone.cycles, times);
}

// The nest that fills an array; surrounding reduce loops are plain loops in it.
Kernel filling(const Kernel& kernel, Id store, const std::vector<Id>& around) {
  Kernel one = part_of(kernel, store);
  std::vector<std::pair<Id, Id>> plain;
  for (Id axis : one.axes) {
    const uint32_t number = range_axis(one.graph[axis]);
    const auto is_around = [&](Id range) { return range_axis(kernel.graph[range]) == number; };
    if (range_kind(one.graph[axis]) == AxisKind::Reduce && std::ranges::any_of(around, is_around))
      plain.emplace_back(
          axis, make_range(one.graph, range_size(one.graph, axis), number, AxisKind::Loop));
  }
  replace(one, plain);
  return one;
}

// Turns arrays into parameters, so that the kernel reads but does not fill them; their fillings are
// nests of their own. Each iteration around an array has elements of its own.
void take_arrays(Kernel& part, const Expansion& expansion, Prediction& out) {
  Graph& g = part.graph;
  OpenRanges open(g);
  std::map<Id, Id> now;
  const auto with_params = [&](Id id) {
    const std::vector<std::pair<Id, Id>> map(now.begin(), now.end());
    return substitute(g, id, map);
  };
  const std::vector<Id> loads = nodes_of(g, part.sink, Op::Load);
  uint32_t number = 0;
  for (Id filled : nodes_of(g, part.sink, Op::Filled)) {
    const FilledParts parts = filled_parts(g, filled);
    const std::vector<Id> around = open.members(open[filled]),
                          stores(parts.stores.begin(), parts.stores.end());
    int64_t count = elements_of(g, parts.array);
    const Id apart = g.binary(Op::Mul, index_of(g, around), g.index(count));
    for (Id range : around) count *= range_size(g, range);
    const Id place = param_for(part, filled, number++, count), array = parts.array;
    now[array] = place;
    for (Id store : stores) {
      Kernel one = filling(part, with_params(store), around);
      add_filling(one, expansion, repeats(part, expansion, open, filled), out);
    }
    now[filled] = place;
    for (Id load : loads) {
      if (g.sources(load)[0] != filled || around.empty()) continue;
      std::vector<Id> sources = to_vector(g.sources(load));
      for (Id& source : sources) source = with_params(source);
      sources[1] = g.binary(Op::Add, sources[1], apart);
      now[load] = g.add(Op::Load, g[load].dtype, sources);
    }
  }
  part.sink = with_params(part.sink);
  replace(part, {});
}

// A store made by one or some of the groups runs over those only.
void take_groups(Kernel& part) {
  Graph& g = part.graph;
  const Id store = g.sources(part.sink)[0];
  if (g.sources(store).size() < 4) return;
  Id gate = kNoId;
  std::vector<std::pair<Id, Id>> fewer;
  for (Id clause : conjuncts(g, g.sources(store)[3])) {
    const Node& n = g[clause];
    const bool is_some = n.op == Op::CmpLt, is_one = n.op == Op::CmpEq;
    const bool is_of_groups = (is_some || is_one) && g[n.src[0]].op == Op::Range &&
                              range_kind(g[n.src[0]]) == AxisKind::Global &&
                              g[n.src[1]].op == Op::Const;
    if (is_of_groups)
      fewer.emplace_back(n.src[0], is_one ? n.src[1]
                                          : make_range(g, const_int(g, n.src[1]),
                                                       range_axis(g[n.src[0]]), AxisKind::Global));
    else
      gate = gate == kNoId ? clause : g.binary(Op::And, gate, clause);
  }
  if (fewer.empty()) return;
  std::vector<Id> sources(g.sources(store).begin(), g.sources(store).end() - 1);
  if (gate != kNoId) sources.push_back(gate);
  part.sink = g.add(Op::Sink, DType::Void, {g.add(Op::Store, g[store].dtype, sources)});
  replace(part, fewer);
}

void add_store(const Kernel& kernel, Id store, Prediction& out) {
  Kernel part = part_of(kernel, store);
  take_groups(part);
  const Expansion expansion = restore_axes(part);
  take_arrays(part, expansion, out);
  add_rows(part, expansion, out);
}

// Work-items of the launch.
double work_items_of(const Kernel& kernel) {
  double items = 1;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    const AxisKind kind = kind_of(kernel, axis);
    if (kind == AxisKind::Global || kind == AxisKind::Local || kind == AxisKind::Group)
      items *= static_cast<double>(size_of_axis(kernel, axis));
  }
  return items;
}

}  // namespace

// Bytes come from the nearest cache that holds them all, as between launches of a replay.
double Prediction::moving(const cost::Machine& machine, double threads) const {
  const auto from = [&](const cost::Level& level) {
    return bytes /
           (level.one + (level.all - level.one) *
                            (machine.threads > 1 ? (threads - 1) / (machine.threads - 1) : 0));
  };
  for (const cost::Level& level : machine.levels)
    if (bytes <= level.bytes * threads) return from(level);
  return from(machine.memory());
}

double Prediction::seconds(const cost::Machine& machine, double threads) const {
  const double used = std::min(threads, busy);
  const double waking = used > 1 ? machine.wake_cycles : 0;
  return (std::max(cycles.all / used, moving(machine, used)) + waking) / machine.cycles_a_second;
}

Prediction predict(const Kernel& kernel, int64_t bytes) {
  Prediction out;
  out.bytes = static_cast<double>(bytes);
  for (Id store : kernel.graph.sources(kernel.sink)) add_store(kernel, store, out);
  const double cores = std::max(1u, kernel.caps->threads);
  const double enough =
      cores * (works_in_groups(*kernel.caps) ? 8.0 * kernel.caps->subgroup_size : 1.0);
  out.idle = std::max(1.0, enough / work_items_of(kernel));
  out.busy = cores / out.idle;
  return out;
}

}  // namespace plugrad::codegen
