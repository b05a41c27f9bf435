// Products of tensor cores while changes are made to a kernel: of whole tiles, as expressions over
// their elements. What each work-item holds of a tile is decided last, so that a copy is of tiles.
//
//   Wmma(a, b, start, row, column, k, item)   a over the elements (row, k) times b over (k,
//   column);
//                                             `item` is the Warp range that shares the tiles. It
//                                             closes the three ranges of elements, which become
//                                             lanes, and are no axes of the kernel.
#pragma once

#include "codegen/analysis/tensor_core.h"

namespace plugrad::codegen {

/// Axis numbers from here on are of elements.
inline constexpr uint32_t kFirstElement = 1u << 20;
inline bool is_element(const Node& n) {
  return n.op == Op::Range && range_axis(n) >= kFirstElement;
}
inline Id element_range(Graph& g, int64_t size, uint32_t which) {
  return make_range(g, size, kFirstElement + which, AxisKind::Vector);
}

/// Whether the node is a product of whole tiles.
inline bool is_of_tiles(const Graph& g, Id id) {
  return g[id].op == Op::Wmma && g.sources(id).size() > 3;
}

struct TileProduct {
  Id a, b, start, row, column, k, item;
};
TileProduct tile_product(const Graph& g, Id wmma);

/// A · B from 0 on; `a` and `b` run over the ranges of elements.
Id make_tile_product(Graph& g, const TensorCore& core, const TileProduct& parts);

/// Products of whole tiles become products of the lanes of their work-items; neighbours in memory
/// are one load.
void lay_out_tiles(Kernel& kernel);

/// The sum of products of lanes, each of which is added to the one before.
Id chain_products(Graph& g, std::span<const Id> products);

}  // namespace plugrad::codegen
