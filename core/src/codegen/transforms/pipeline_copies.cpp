// A schedule step, no local rewrite: loops change for the whole kernel.
// ahead(slot, n): the tiles that a group copies of a parameter into local memory are copied n turns
// of their loop before they are used, so that the copy runs beside the use of others.
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/claims.h"
#include "codegen/transforms/changes.h"
#include "codegen/transforms/software_pipelining.h"
#include "ir/facts.h"
#include "ir/range.h"
#include "ir/scratch.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kMostAhead = 7;   // turns; the place of each is local memory
constexpr int64_t kTileAlign = 16;  // bytes, of the largest copy

// Where one reduction stands in another, their loops do not nest in the order of their axes.
bool belong_to_one_reduction(const Graph& g, Id sink, std::span<const Id> loops) {
  return std::ranges::all_of(nodes_of(g, sink, Op::Reduce), [&](Id reduce) {
    const auto closed = g.sources(reduce).subspan(1);
    const auto closes = [&](Id r) { return std::ranges::find(closed, r) != closed.end(); };
    return std::ranges::none_of(loops, closes) || std::ranges::all_of(loops, closes);
  });
}

}  // namespace

void pipeline_copies(Kernel& kernel, const ScheduleStep& change) {
  Graph& g = kernel.graph;
  const std::string text = to_string({change});
  require(kernel.caps->async_copy_bytes != 0, "[codegen] {}: the device has no asynchronous copies",
          text);
  require(change.amount >= 1 && change.amount <= kMostAhead,
          "[codegen] {}: {} turns ahead; from 1 to {} are possible", text, change.amount,
          kMostAhead);
  OpenRanges open(g);
  std::vector<std::pair<Id, Id>> map;
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled)) {
    const FilledParts parts = filled_parts(g, filled);
    const bool is_meant =
        is_local(g, filled) && std::ranges::any_of(nodes_of(g, filled, Op::Load), [&](Id load) {
          const Id memory = g.sources(load)[0];
          return g[memory].op == Op::Param && param_info(g, memory).slot == change.axis;
        });
    if (!is_meant) continue;
    ArrayInfo info = array_info(g, parts.array);
    require(info.ahead == 0, "[codegen] {}: it is copied ahead already", text);
    const std::vector<Id> loops = reduce_loops(g, open, filled);
    require(!loops.empty(), "[codegen] {}: it is not copied in turns of a reduce loop", text);
    require(belong_to_one_reduction(g, kernel.sink, loops),
            "[codegen] {}: it is copied in turns of loops of two reductions", text);
    const auto elements = kTileAlign / static_cast<int64_t>(size_of(g[filled].dtype));
    info.elem_count = (info.elem_count + elements - 1) / elements * elements;
    info.ahead = change.amount;
    map.emplace_back(parts.array, make_array(g, g[parts.array].dtype, info));
  }
  require(!map.empty(), "[codegen] {}: nothing of parameter {} is copied into local memory", text,
          change.axis);
  replace(kernel, map);
}

}  // namespace plugrad::codegen
