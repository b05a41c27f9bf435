// Column reduction: sums of columns read a matrix row by row. The sums of a strip of columns stay
// in the output, in cache, while a few whole rows at a time are added to them.
#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Bytes between rows from which prefetching does not follow: a page of x86-64, whose borders
// hardware prefetchers do not cross (Intel's optimisation manual, "Data Prefetching").
constexpr int64_t kFarApart = 4096;
// Row iterations, so that the first and the last cost little. Chosen, not measured.
constexpr int64_t kFewestRounds = 32;
// Groups for each thread, so that threads finish together. Chosen, not measured.
constexpr int64_t kColumnGroupsPerThread = 4;
// Bytes of a row: 512 of halves take 3.6 ms for a matrix of 4096 x 4096, 128 took 5.5 ms (bench
// halves, matvec, AVX-512); 16 registers hold 128, which the tile chooses by itself.
constexpr int64_t kLongRun = 512;
// Rows read per iteration; the first that divides the number of rows. Chosen, not measured.
constexpr int64_t kRowsOfRound[] = {8, 7, 6, 5, 4};

struct Columns {
  size_t lanes_loop = SIZE_MAX;  // indices in kernel.axes: the loop over vectors of columns
  size_t rounds = SIZE_MAX;      // the loop over rows
  int64_t others = 1;            // iterations of the other output loops
};

// Whether the matrix exceeds the caches: a thread's own for one result row, its share of the last
// one for several, because one row is computed as fast as the last cache delivers.
bool exceeds_caches(const Kernel& kernel, Id load, bool is_one_row) {
  const Graph& g = kernel.graph;
  const pgr_device_caps& caps = *kernel.caps;
  const Id matrix = g.sources(load)[0];
  if (g[matrix].op != Op::Param) return false;
  const auto bytes =
      static_cast<uint64_t>(param_info(g, matrix).elem_count) * size_of(g[load].dtype);
  const uint64_t held = is_one_row ? caps.cache_bytes[1] : caps.cache_bytes[2] / 4;
  return held > 0 && bytes > held;
}

// Whether each element of the load is used once, apart from `rows` that are computed side by side,
// and its rows are far apart.
bool streams_rows(const Kernel& kernel, OpenRanges& open, Id store, Id load, Id rounds,
                  RangeSet rows) {
  const Graph& g = kernel.graph;
  const std::vector<Id> reduces = nodes_of(g, store, Op::Reduce);
  if (reduces.size() != 1) return false;
  const RangeSet all = open[reduce_parts(g, reduces[0]).values[0]] | open[store];
  if ((open[load] | rows) != (all | rows)) return false;
  if ((open[load] & rows) != rows && !exceeds_caches(kernel, load, false)) return false;
  const int64_t stride = stride_of(g, g.sources(load)[1], rounds).value_or(0);
  return std::abs(stride) * size_of(g[load].dtype) >= kFarApart;
}

Columns find_columns(const Kernel& kernel) {
  const Graph& g = kernel.graph;
  Columns out;
  // The second store may be that of the remaining columns.
  if (nodes_of(g, kernel.sink, Op::Reduce).size() != g.sources(kernel.sink).size()) return out;
  const Id store = g.sources(kernel.sink)[0];
  Id lanes = kNoId;
  OpenRanges open(g);
  RangeSet rows = 0;
  bool adds_several = false;
  for (Id axis : kernel.axes) {
    if (range_kind(g[axis]) == AxisKind::Vector && open.depends(store, axis)) lanes = axis;
    if (range_kind(g[axis]) == AxisKind::Upcast) rows |= open.bit(axis);
    adds_several |= range_kind(g[axis]) == AxisKind::Unroll;
  }
  if (rows != 0 && !adds_several) return out;  // the sums would move more bytes than the matrix
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
      if (streams_rows(kernel, open, store, load, kernel.axes[i], rows)) out.rounds = i;
  }
  return out;
}

// Whether the reduction applies with the tile's steps.
bool would_sum_columns(const Kernel& kernel, const Tile& tile) {
  Kernel trial = copy_of(kernel);
  for (size_t axis = kernel.axes.size(); axis-- > 0;) {
    const bool is_vector = axis == tile.vector_axis;
    if (tile.amounts[axis] == 1 && !is_vector) continue;
    const uint32_t number = range_axis(kernel.graph[kernel.axes[axis]]);
    const auto it =
        std::ranges::find(trial.axes, number, [&](Id r) { return range_axis(trial.graph[r]); });
    const Kind kind = is_vector                                   ? Kind::Vectorize
                      : kind_of(kernel, axis) == AxisKind::Reduce ? Kind::Unroll
                                                                  : Kind::Upcast;
    apply(trial, {kind, static_cast<uint32_t>(it - trial.axes.begin()), tile.amounts[axis]});
  }
  return schedule_column_reduction(trial) != SIZE_MAX;
}

// A sum of another dtype than the output cannot stay there and takes as many columns as half the
// registers hold: rows are on separate pages, and each page is visited less often.
bool sum_in_registers(const Kernel& kernel, Id load, Tile& tile) {
  const Graph& g = kernel.graph;
  const Id store = g.sources(kernel.sink)[0], reduce = nodes_of(g, store, Op::Reduce)[0];
  const pgr_device_caps& caps = *kernel.caps;
  if (g[reduce].dtype == g[g.sources(store)[0]].dtype || g[load].dtype == g[reduce].dtype)
    return false;
  const int64_t lanes = caps.vector_lanes[static_cast<size_t>(g[reduce].dtype)];
  const int64_t columns = lanes * caps.vector_registers / 2;
  const int64_t size = size_of_axis(kernel, tile.vector_axis);
  if (columns * size_of(g[load].dtype) < kLongRun || size % columns != 0) return false;
  if (size < kColumnGroupsPerThread * columns) return false;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Reduce) tile.amounts[axis] = 1;
  tile.amounts[tile.vector_axis] = columns;
  return true;
}

}  // namespace

bool narrow_to_columns(const Kernel& kernel, int64_t lanes, Tile& tile) {
  const Graph& g = kernel.graph;
  const size_t columns = tile.vector_axis;
  const Id store = g.sources(kernel.sink)[0];
  if (columns == SIZE_MAX || kind_of(kernel, columns) != AxisKind::Loop) return false;
  if (stride_of(g, g.sources(store)[1], kernel.axes[columns]) != 1) return false;
  OpenRanges open(g);
  RangeSet rows = 0;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (axis == columns || tile.amounts[axis] == 1) continue;
    if (tile.amounts[axis] != size_of_axis(kernel, axis)) return false;
    rows |= open.bit(kernel.axes[axis]);
  }
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    if (kind_of(kernel, axis) != AxisKind::Reduce) continue;
    const int64_t size = size_of_axis(kernel, axis);
    const auto* round =
        std::ranges::find_if(kRowsOfRound, [&](int64_t n) { return size % n == 0; });
    if (round == std::end(kRowsOfRound) || size < kFewestRounds * *round) continue;
    for (Id load : nodes_of(g, store, Op::Load)) {
      if (stride_of(g, g.sources(load)[1], kernel.axes[columns]) != 1) continue;
      if (!streams_rows(kernel, open, store, load, kernel.axes[axis], rows)) continue;
      if (!exceeds_caches(kernel, load, rows == 0)) continue;
      Tile narrow = tile;
      narrow.amounts[columns] = lanes;
      narrow.amounts[axis] = *round;
      if (!would_sum_columns(kernel, narrow) && !sum_in_registers(kernel, load, narrow)) continue;
      tile = narrow;
      return true;
    }
  }
  return false;
}

namespace {

size_t sum_in_strips(Kernel& kernel, const Columns& columns) {
  auto rounds = static_cast<uint32_t>(columns.rounds);
  size_t strip = columns.lanes_loop;
  const int64_t size = size_of_axis(kernel, strip), threads = kernel.caps->threads;
  const int64_t groups = std::min(size, threads < 2 ? 1 : kColumnGroupsPerThread * threads);
  if (columns.others < groups && groups > 1) {
    apply(kernel, {Kind::Block, static_cast<uint32_t>(strip), size / groups});
    const auto is_output = [&](Id r) { return is_output_axis(range_kind(kernel.graph[r])); };
    strip = static_cast<size_t>(std::ranges::count_if(kernel.axes, is_output) - 1);
    ++rounds;
  }
  apply(kernel, {Kind::SplitK, rounds, static_cast<int64_t>(strip)});
  return strip;
}

}  // namespace

size_t schedule_column_reduction(Kernel& kernel) {
  const Columns columns = find_columns(kernel);
  if (columns.lanes_loop == SIZE_MAX || columns.rounds == SIZE_MAX) return SIZE_MAX;
  // Sums that cannot stay in the output stay in registers.
  return attempt(kernel, [&](Kernel& k) { return sum_in_strips(k, columns); }).value_or(SIZE_MAX);
}

}  // namespace plugrad::codegen
