// Interleaved prefetch (heuristic.h): the tile reads rows that are far apart, not adjacent ones.
#include <algorithm>

#include "base/check.h"
#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Groups for each thread, so that threads finish together. Chosen, not measured.
constexpr int64_t kGroupsPerThread = 8;

// Bytes between two values of the axis if the load reads each element once and all elements in
// between belong to one value; 0 otherwise.
int64_t bytes_of_row(const Kernel& kernel, OpenRanges& open, Id load, size_t axis) {
  const Graph& g = kernel.graph;
  if (g[g.sources(load)[0]].op != Op::Param || g.sources(load).size() > 2) return 0;
  const auto stride = [&](Id range) {
    return open.depends(load, range) ? stride_of(g, g.sources(load)[1], range).value_or(0) : 0;
  };
  const int64_t row = stride(kernel.axes[axis]);
  int64_t inside = 1;
  for (Id range : kernel.axes) {
    if (stride(range) <= 0) return 0;
    if (stride(range) < row) inside *= range_size(g, range);
  }
  return inside == row ? row * size_of(g[load].dtype) : 0;
}

// A similar number of rows that divides the size.
int64_t fitting_rows(int64_t size, int64_t count, int64_t rows) {
  for (int64_t more = rows; more < 2 * rows; ++more)
    if (size % (count * more) == 0) return more;
  for (int64_t fewer = rows; fewer > rows / 2; --fewer)
    if (size % (count * fewer) == 0) return fewer;
  return rows;
}

}  // namespace

int64_t prefetch_stream_rows(const Kernel& kernel, size_t axis, int64_t count) {
  const int64_t size = size_of_axis(kernel, axis);
  OpenRanges open(kernel.graph);
  int64_t row = 0;
  for (Id load : nodes_of(kernel.graph, kernel.sink, Op::Load))
    row = std::max(row, bytes_of_row(kernel, open, load, axis));
  // Streams beyond the reach of the TLB are no faster.
  const auto stream = static_cast<int64_t>(kernel.machine().tlb_bytes);
  const auto cached = static_cast<int64_t>(kernel.caps->cache_bytes[1]);
  if (row == 0 || row >= stream || cached == 0 || size * row < cached) return 1;
  const int64_t groups = kernel.caps->threads < 2 ? 1 : kGroupsPerThread * kernel.caps->threads;
  const int64_t rows = std::min((stream + row - 1) / row, size / (count * groups));
  return rows < 2 ? 1 : fitting_rows(size, count, rows);
}

bool joins_prefetch_streams(const Kernel& kernel, size_t axis) {
  OpenRanges open(kernel.graph);
  const Id lanes = kernel.axes[axis];
  const auto joins = [&](Id load) {
    const auto stride = [&](Id range) {
      return stride_of(kernel.graph, kernel.graph.sources(load)[1], range).value_or(0);
    };
    for (size_t row = 0; row < kernel.axes.size(); ++row)
      if (kind_of(kernel, row) == AxisKind::Reduce && bytes_of_row(kernel, open, load, row) > 0 &&
          stride(lanes) < stride(kernel.axes[row]))
        return true;
    return false;
  };
  return iterations_of(kernel) * sizeof(float) >=
             static_cast<double>(kernel.caps->cache_bytes[1]) &&
         std::ranges::any_of(nodes_of(kernel.graph, kernel.sink, Op::Load), joins);
}

void upcast_interleaved(Kernel& kernel, size_t axis, int64_t count, int64_t rows) {
  auto place = static_cast<uint32_t>(axis);
  if (size_of_axis(kernel, place) > count * rows) {
    const uint32_t inner = new_axis(kernel);
    apply(kernel, {Kind::Block, place, count * rows});
    place = static_cast<uint32_t>(axis_with_number(kernel, inner));
    ensure(place < kernel.axes.size(), "[codegen] a block of rows without its inner axis");
  }
  apply(kernel, {Kind::Block, place, rows});
  apply(kernel, {Kind::Upcast, place, count});
}

}  // namespace plugrad::codegen
