#include "codegen/tiling/row_kernels.h"

#include <algorithm>
#include <map>

#include "codegen/analysis/access.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "plugrad/plugin_api/kernel_ir.h"

namespace plugrad::codegen {
namespace {

// Arrays, and reductions whose result is used along a loop outside theirs. Reductions inside the
// loops of another one belong to that one.
std::vector<Id> row_values(const Kernel& kernel, OpenRanges& open) {
  const Graph& g = kernel.graph;
  RangeSet outputs = 0;
  for (Id axis : kernel.axes)
    if (is_output_axis(range_kind(g[axis]))) outputs |= open.bit(axis);
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(g, std::span(&kernel.sink, 1));
  std::vector<RangeSet> around(kernel.sink + 1, 0);
  std::vector<Id> found;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Id id = *it;
    const bool has_loops = g[id].op == Op::Reduce || g[id].op == Op::Filled;
    if (has_loops && (around[id] & ~open[id]) != 0 && (open[id] & ~outputs) == 0)
      found.push_back(id);
    RangeSet mine = around[id];
    if (g[id].op != Op::Sink) mine |= open[id];
    if (has_loops)
      for (Id s : g.sources(id))
        if (g[s].op == Op::Range) mine |= open.bit(s);
    for (Id s : g.sources(id)) around[s] |= mine;
  }
  std::ranges::reverse(found);
  return found;
}

// One store as a kernel of its own, at the middle row: a condition on the row, as at borders and in
// causal attention, then has its average cost.
Kernel in_middle_row(const Kernel& kernel, Id store, std::span<const Id> row_loops) {
  Kernel one = part_of(kernel, store);
  std::vector<std::pair<Id, Id>> middle;
  for (Id axis : one.axes)
    for (Id loop : row_loops)
      if (range_axis(one.graph[axis]) == range_axis(kernel.graph[loop]))
        middle.emplace_back(axis, one.graph.index(range_size(one.graph, axis) / 2));
  replace(one, middle);
  return one;
}

}  // namespace

int64_t elements_of(const Graph& g, Id array) {
  return g[array].op == Op::Array ? array_info(g, array).elem_count
                                  : param_info(g, array).elem_count;
}

Id index_of(Graph& g, std::span<const Id> ranges) {
  Id index = g.index(0);
  for (Id r : ranges)
    index = g.binary(Op::Add, g.binary(Op::Mul, index, g.index(range_size(g, r))), r);
  return index;
}

Id param_for(Kernel& kernel, Id value, uint32_t number, int64_t count) {
  Graph& g = kernel.graph;
  uint32_t slot = number;
  for (Id id : nodes_of(g, kernel.sink, Op::Param))
    slot = std::max(slot, param_info(g, id).slot + 1 + number);
  return make_param(g, g[value].dtype, {slot, count, PGR_PARAM_WRITE | PGR_PARAM_READ});
}

bool RowKernels::is_row_axis(uint32_t axis_number) const {
  return std::ranges::find(row_axes, axis_number) != row_axes.end();
}

bool RowKernels::allows(uint32_t axis_number) const {
  return is_row_axis(axis_number) ||
         (has_arrays && std::ranges::find(axes, axis_number) == axes.end());
}

RowKernels row_kernels(Kernel& kernel, const std::set<uint32_t>& across) {
  Graph& g = kernel.graph;
  OpenRanges open(g);
  const std::vector<Id> made = row_values(kernel, open);
  RowKernels out;
  if (made.empty()) return out;
  RangeSet shared = ~RangeSet{0};
  for (Id value : made) shared &= open[value];
  for (Id axis : kernel.axes) {
    out.axes.push_back(range_axis(g[axis]));
    if (across.contains(range_axis(g[axis]))) shared &= ~open.bit(axis);
  }
  const std::vector<Id> row_loops = open.members(shared);
  double rows = 1;
  for (Id loop : row_loops) {
    out.row_axes.push_back(range_axis(g[loop]));
    rows *= static_cast<double>(range_size(g, loop));
  }
  std::map<Id, Id> loads;
  const auto with_loads = [&](Id id) {
    const std::vector<std::pair<Id, Id>> now(loads.begin(), loads.end());
    return substitute(g, id, now);
  };
  const auto add = [&](Id store) {
    out.parts.push_back(in_middle_row(kernel, store, row_loops));
    out.iterations += rows * iterations_of(out.parts.back());
  };
  uint32_t number = 0;
  for (Id value : made) {
    if (g[value].op == Op::Filled) {
      out.has_arrays = true;
      const FilledParts parts = filled_parts(g, value);
      const Id place = param_for(kernel, value, number++, elements_of(g, parts.array));
      loads[parts.array] = place;
      for (Id store : to_vector(parts.stores)) add(with_loads(store));
      loads[value] = place;
      continue;
    }
    const std::vector<Id> others = open.members(open[value] & ~shared);
    int64_t count = 1;
    for (Id r : others) count *= range_size(g, r);
    const Id now = with_loads(value), place = param_for(kernel, now, number++, count),
             at = index_of(g, others);
    add(g.add(Op::Store, DType::Void, {place, at, now}));
    loads[value] = g.add(Op::Load, g[now].dtype, {place, at});
  }
  add(with_loads(g.sources(kernel.sink)[0]));
  return out;
}

}  // namespace plugrad::codegen
