// Attention tiling, for rows %i, keys %j and columns %d of the values:
//   before   reduce add (f(reduce add (%q[%i, %e] * %k[%j, %e]), …) * %v[%j, %d]), %j
//   after    blocks of rows outside; inside each block the scores of all keys, lanes over the rows:
//            an element of a key is read once for all lanes, and softmax reduces within lanes
// A block's buffer has keys times rows elements, so memory grows with one length only.
#include <algorithm>

#include "codegen/analysis/access.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "ir/facts.h"
#include "ir/scratch.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// Rows in a block, in vectors: with as many columns a register tile. Chosen, not measured
// (docs/decisions/rows-of-scores-wait-in-scratch.md).
constexpr int64_t kVectorsOfRows = 2;

// The reduce axis of the product and the value that is computed along it for each column.
struct Product {
  size_t axis = SIZE_MAX;
  Repeated rows;
};

Product find_row_product(const Kernel& kernel) {
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis) {
    Repeated found = find_repeated(kernel, axis);
    if (found.in_blocks) return {axis, std::move(found)};
  }
  return {};
}

// The output axes that the value depends on.
std::vector<size_t> loops_of(const Kernel& kernel, Id value) {
  OpenRanges open(kernel.graph);
  std::vector<size_t> loops;
  for (size_t axis = 0; axis < kernel.axes.size(); ++axis)
    if (kind_of(kernel, axis) == AxisKind::Loop && open.depends(value, kernel.axes[axis]))
      loops.push_back(axis);
  return loops;
}

int64_t rows_of_block(const Kernel& kernel, const Product& product, size_t rows) {
  const pgr_device_caps& caps = *kernel.caps;
  const DType dtype = kernel.graph[product.rows.values[0]].dtype;
  const auto length = static_cast<uint64_t>(size_of_axis(kernel, product.axis));
  const auto fit = static_cast<int64_t>(caps.private_bytes / (length * size_of(dtype)));
  const int64_t lanes = std::max(1u, caps.vector_lanes[static_cast<size_t>(dtype)]),
                size = size_of_axis(kernel, rows);
  const int64_t most = std::clamp<int64_t>(fit, 1, std::max<int64_t>(kVectorsOfRows * lanes, 8));
  return size <= most ? size : part_of_size(size, most);
}

// Moves these axes outermost, in their order.
void move_out(Kernel& kernel, std::span<const size_t> axes) {
  for (size_t place = 0; place < axes.size(); ++place)
    for (size_t at = axes[place]; at > place; --at)
      apply(kernel, {Kind::Swap, static_cast<uint32_t>(at - 1), static_cast<int64_t>(at)});
}

// Applies compute_at inside the first `place` axes, producers first.
void compute_inside(Kernel& kernel, size_t place) {
  for (size_t axis = 0; axis < kernel.axes.size();) {
    const bool is_kept = !find_repeated(kernel, axis).values.empty();
    if (is_kept)
      apply(kernel, {Kind::ComputeAt, static_cast<uint32_t>(axis), static_cast<int64_t>(place)});
    axis = is_kept ? 0 : axis + 1;  // compute_at renumbers the axes
  }
}

size_t take_in_blocks(Kernel& kernel, const Product& product) {
  std::vector<size_t> loops = loops_of(kernel, product.rows.values[0]);
  const size_t rows = loops.back();
  const int64_t block = rows_of_block(kernel, product, rows);
  if (block < size_of_axis(kernel, rows))
    apply(kernel, {Kind::Block, static_cast<uint32_t>(rows), block});
  else
    loops.pop_back();
  move_out(kernel, loops);
  compute_inside(kernel, loops.size());
  return loops.size();
}

}  // namespace

bool tile_attention(Kernel& kernel) {
  if (kernel.caps->private_bytes == 0 || kernel.graph.sources(kernel.sink).size() != 1)
    return false;
  const Product product = find_row_product(kernel);
  if (product.axis == SIZE_MAX || loops_of(kernel, product.rows.values[0]).empty()) return false;
  return attempt(kernel, [&](Kernel& k) { return take_in_blocks(k, product); }).has_value();
}

namespace {

// Whether lanes of the range gather the load repeatedly.
bool gathers(const Kernel& kernel, OpenRanges& open, Id store, Id load, Id lanes) {
  const Graph& g = kernel.graph;
  if (g[g.sources(load)[0]].op != Op::Param || !open.depends(load, lanes)) return false;
  if (stride_of(g, g.sources(load)[1], lanes) == 1) return false;
  double reuse = 1;
  bool sums = false;
  for (Id r : kernel.axes) {
    if (open.depends(load, r))
      sums |= is_reduce_axis(range_kind(g[r]));
    else if (open.depends(store, r))
      reuse *= static_cast<double>(range_size(g, r));
  }
  return sums && reuse >= kEnoughGathers;
}

// The number of outermost loops in which arrays are filled.
size_t loops_around(const Kernel& kernel, OpenRanges& open) {
  RangeSet around = 0;
  for (Id filled : nodes_of(kernel.graph, kernel.sink, Op::Filled)) around |= open[filled];
  size_t place = 0;
  while ((open.bit(kernel.axes[place]) & around) != 0) ++place;
  return place;
}

// The parameter of such a load, and the positions of the loops around its array.
struct Gathered {
  uint32_t slot;
  size_t place;
};

std::optional<Gathered> find_gathered(const Kernel& kernel) {
  const Graph& g = kernel.graph;
  OpenRanges open(g);
  for (Id filled : nodes_of(g, kernel.sink, Op::Filled))
    for (Id store : filled_parts(g, filled).stores)
      for (Id lanes : kernel.axes) {
        if (range_kind(g[lanes]) != AxisKind::Vector || !open.depends(store, lanes)) continue;
        for (Id load : nodes_of(g, store, Op::Load))
          if (gathers(kernel, open, store, load, lanes))
            return Gathered{param_info(g, g.sources(load)[0]).slot, loops_around(kernel, open)};
      }
  return std::nullopt;
}

}  // namespace

void pack_row_blocks(Kernel& kernel) {
  std::vector<uint32_t> done;
  while (const auto found = find_gathered(kernel)) {
    if (std::ranges::find(done, found->slot) != done.end()) return;
    done.push_back(found->slot);
    attempt(kernel, [&](Kernel& k) {
      apply(k, {Kind::CacheRead, found->slot, static_cast<int64_t>(found->place)});
      return found->place;
    });
  }
}

}  // namespace plugrad::codegen
