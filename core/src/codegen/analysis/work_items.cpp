#include "codegen/analysis/work_items.h"

#include <algorithm>

#include "codegen/analysis/tensor_core.h"
#include "ir/facts.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

// For each work-item range: the other ranges that some node depends on too, or that one Reduce
// closes with it.
std::vector<RangeSet> ranges_side_by_side(const Kernel& kernel, OpenRanges& open,
                                          const std::vector<Id>& ranges) {
  const Graph& g = kernel.graph;
  std::vector<RangeSet> together(ranges.size(), 0);
  Reachable reachable;
  for (Id id : reachable.from(g, std::span(&kernel.sink, 1))) {
    if (id == kernel.sink) continue;
    RangeSet set = open[id];
    if (g[id].op == Op::Reduce)
      for (Id r : reduce_parts(g, id).ranges) set |= open.bit(r);
    for (size_t i = 0; i < ranges.size(); ++i)
      if ((set & open.bit(ranges[i])) != 0) together[i] |= set;
  }
  return together;
}

}  // namespace

std::vector<WorkItemAxis> work_item_axes(const Kernel& kernel, OpenRanges& open) {
  const Graph& g = kernel.graph;
  std::vector<Id> ranges;
  for (Id r : kernel.axes)
    if (is_work_item_axis(range_kind(g[r]))) ranges.push_back(r);
  std::ranges::sort(ranges, std::greater{}, [&](Id r) {
    return std::pair(range_kind(g[r]) == AxisKind::Warp, range_axis(g[r]));
  });
  const std::vector<RangeSet> together = ranges_side_by_side(kernel, open, ranges);
  std::vector<WorkItemAxis> axes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int64_t size = range_size(g, ranges[i]);
    const auto apart = [&](Id other) { return (together[i] & open.bit(other)) == 0; };
    const auto it = std::ranges::find_if(axes, [&](const WorkItemAxis& axis) {
      return axis.size == size && std::ranges::all_of(axis.ranges, apart);
    });
    if (it == axes.end())
      axes.push_back({size, {ranges[i]}});
    else
      it->ranges.push_back(ranges[i]);
  }
  return axes;
}

bool is_group_reduce(const Graph& g, Id reduce) {
  if (g[reduce].op != Op::Reduce) return false;
  const auto ranges = reduce_parts(g, reduce).ranges;
  return !ranges.empty() &&
         std::ranges::all_of(ranges, [&](Id r) { return range_kind(g[r]) == AxisKind::Group; });
}

bool gate_encloses(const Graph& g, OpenRanges& open, Id store) {
  if (g.sources(store).size() < 4) return false;
  bool by_item = false;
  for (Id r : open.members(open[g.sources(store)[3]])) {
    const bool item = g[r].op == Op::Range && is_work_item_axis(range_kind(g[r]));
    if (!item && (g[r].op != Op::Range || range_kind(g[r]) != AxisKind::Global)) return false;
    by_item |= item;
  }
  if (!by_item) return true;
  if (has_wmma(g, store)) return false;
  if (std::ranges::any_of(nodes_of(g, store, Op::Filled),
                          [&](Id filled) { return is_local(g, filled); }))
    return false;
  return std::ranges::none_of(nodes_of(g, store, Op::Reduce),
                              [&](Id reduce) { return is_group_reduce(g, reduce); });
}

}  // namespace plugrad::codegen
