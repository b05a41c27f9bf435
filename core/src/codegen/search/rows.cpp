#include "codegen/search/rows.h"

#include <algorithm>

#include "codegen/access.h"
#include "codegen/search/tile_search.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

// Reductions over which something runs along a loop that they do not run along. Those that stand in the loops of
// another reduction belong to it.
std::vector<Id> row_reductions(const Kernel& kernel, OpenRanges& open) {
  const Graph& g = kernel.graph;
  uint64_t outputs = 0;
  for (Id axis : kernel.axes)
    if (is_output_axis(range_kind(g[axis]))) outputs |= open.bit(axis);
  Reachable reachable;
  const std::vector<Id>& nodes = reachable.from(g, std::span(&kernel.sink, 1));
  std::vector<uint64_t> around(kernel.sink + 1, 0);
  std::vector<Id> found;
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    const Id id = *it;
    if (g[id].op == Op::Reduce && (around[id] & ~open[id]) != 0 && (open[id] & ~outputs) == 0) found.push_back(id);
    uint64_t mine = around[id];
    if (g[id].op != Op::Sink) mine |= open[id];
    if (g[id].op == Op::Reduce)
      for (Id r : reduce_parts(g, id).ranges) mine |= open.bit(r);
    for (Id s : g.sources(id)) around[s] |= mine;
  }
  std::ranges::reverse(found);
  return found;
}

// What one store does, in a kernel of its own, in the first row alone.
Kernel in_first_row(const Kernel& kernel, Id store, std::span<const Id> row_loops) {
  Kernel one;
  one.caps = kernel.caps;
  one.options = kernel.options;
  const Id copy = copy_into(one.graph, kernel.graph, store);
  one.sink = one.graph.add(Op::Sink, DType::Void, {copy});
  compact(one);
  std::vector<std::pair<Id, Id>> first;
  for (Id axis : one.axes)
    for (Id loop : row_loops)
      if (range_axis(one.graph[axis]) == range_axis(kernel.graph[loop])) first.emplace_back(axis, one.graph.index(0));
  replace(one, first);
  return one;
}

// An element that no buffer of the kernel is, for the result of a reduction.
Id place_for(Kernel& kernel, Id value, uint32_t number) {
  Graph& g = kernel.graph;
  uint32_t slot = number;
  for (Id id : nodes_of(g, kernel.sink, Op::Param)) slot = std::max(slot, param_info(g, id).slot + 1 + number);
  return make_param(g, g[value].dtype, {slot, 1, PGR_PARAM_WRITE | PGR_PARAM_READ});
}

}  // namespace

RowParts row_parts(Kernel& kernel) {
  Graph& g = kernel.graph;
  OpenRanges open(g);
  const std::vector<Id> reductions = row_reductions(kernel, open);
  RowParts out;
  if (reductions.empty()) return out;
  uint64_t shared = ~uint64_t{0}, any = 0;
  for (Id reduction : reductions) {
    shared &= open[reduction];
    any |= open[reduction];
  }
  const std::vector<Id> row_loops = open.members(any);
  for (Id loop : open.members(shared)) out.row_axes.push_back(range_axis(g[loop]));
  double rows = 1;
  for (Id loop : row_loops) rows *= static_cast<double>(range_size(g, loop));
  std::vector<std::pair<Id, Id>> loads;
  const auto add = [&](Id store) {
    out.parts.push_back(in_first_row(kernel, store, row_loops));
    out.iterations += rows * iterations_of(out.parts.back());
  };
  for (Id reduction : reductions) {
    const Id value = substitute(g, reduction, loads);
    const Id place = place_for(kernel, value, static_cast<uint32_t>(loads.size()));
    add(g.add(Op::Store, DType::Void, {place, g.index(0), value}));
    loads.emplace_back(reduction, g.add(Op::Load, g[value].dtype, {place, g.index(0)}));
  }
  add(substitute(g, g.sources(kernel.sink)[0], loads));
  return out;
}

}  // namespace plugrad::codegen
