// Sums of columns read a matrix row by row: the sums of a strip of columns wait in the output,
// which stays in the cache, while a few whole rows at a time are added to them.
#include "codegen/search/column_sums.h"

#include <algorithm>

#include "codegen/access.h"
#include "codegen/search/apply.h"
#include "codegen/search/tile_search.h"
#include "plugrad/error.h"
#include "uop/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = Optimisation::Kind;

constexpr int64_t kFarApart = 4096;    // bytes between rows that prefetching does not follow
constexpr int64_t kFewestRounds = 32;  // of rows, for the first and the last to cost little
constexpr int64_t kGroupsPerThread = 4;

struct Columns {
  size_t lanes_loop = SIZE_MAX;  // places in kernel.axes: the loop over vectors of columns
  size_t rounds = SIZE_MAX;      // the loop over rows
  int64_t others = 1;            // iterations of the other output loops
};

// Whether each element that the load takes is needed once, and its rows lie far apart.
bool streams_rows(const Kernel& kernel, OpenRanges& open, Id store, Id load, Id rounds) {
  const Graph& g = kernel.graph;
  const std::vector<Id> reduces = nodes_of(g, store, Op::Reduce);
  if (reduces.size() != 1) return false;
  const RangeSet all = open[reduce_parts(g, reduces[0]).values[0]] | open[store];
  if (open[load] != all) return false;
  const int64_t stride = stride_of(g, g.sources(load)[1], rounds).value_or(0);
  return std::abs(stride) * size_of(g[load].dtype) >= kFarApart;
}

Columns find_columns(const Kernel& kernel) {
  const Graph& g = kernel.graph;
  Columns out;
  // Behind the first store there may be that of the columns that are left over.
  if (nodes_of(g, kernel.sink, Op::Reduce).size() != g.sources(kernel.sink).size()) return out;
  const Id store = g.sources(kernel.sink)[0];
  Id lanes = kNoId;
  OpenRanges open(g);
  for (Id axis : kernel.axes)
    if (range_kind(g[axis]) == AxisKind::Vector && open.depends(store, axis)) lanes = axis;
  if (lanes == kNoId || stride_of(g, g.sources(store)[1], lanes) != 1) return out;
  const int64_t width = range_size(g, lanes);
  for (size_t i = 0; i < kernel.axes.size(); ++i) {
    if (kind_of(kernel, i) == AxisKind::Loop) {
      if (stride_of(g, g.sources(store)[1], kernel.axes[i]) == width)
        out.lanes_loop = i;
      else
        out.others *= size_of_axis(kernel, i);
    }
    if (kind_of(kernel, i) != AxisKind::Reduce || size_of_axis(kernel, i) < kFewestRounds) continue;
    for (Id load : nodes_of(g, store, Op::Load))
      if (streams_rows(kernel, open, store, load, kernel.axes[i])) out.rounds = i;
  }
  return out;
}

}  // namespace

size_t sum_columns(Kernel& kernel) {
  const Columns columns = find_columns(kernel);
  if (columns.lanes_loop == SIZE_MAX || columns.rounds == SIZE_MAX) return SIZE_MAX;
  Kernel trial = copy_of(kernel);
  auto rounds = static_cast<uint32_t>(columns.rounds);
  size_t strip = columns.lanes_loop;
  const int64_t size = size_of_axis(trial, strip), threads = kernel.caps->threads;
  const int64_t groups = std::min(size, threads < 2 ? 1 : kGroupsPerThread * threads);
  try {
    if (columns.others < groups && groups > 1) {
      apply(trial, {Kind::Block, static_cast<uint32_t>(strip), size / groups});
      strip = static_cast<size_t>(
          std::ranges::count_if(trial.axes,
                                [&](Id r) { return is_output_axis(range_kind(trial.graph[r])); }) -
          1);
      ++rounds;
    }
    apply(trial, {Kind::Accumulate, rounds, static_cast<int64_t>(strip)});
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::User) throw;
    return SIZE_MAX;  // what cannot wait in the output is summed in registers
  }
  kernel = std::move(trial);
  return strip;
}

}  // namespace plugrad::codegen
