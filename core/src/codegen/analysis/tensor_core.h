// Tensor cores: which elements of a tile each work-item holds in its lanes, and products of whole
// tiles. While schedule steps are applied, a product is one expression over the elements of its
// tiles, so that cache_read can copy a tile; lay_out_tiles then assigns elements to lanes.
//   Wmma(a, b, start, row, column, k, item)   a over elements (row, k) times b over (k, column),
//                                             plus `start`: a vector of zeros, which linearise
//                                             replaces by the accumulator. `item` is the range of
//                                             kind Warp, the work-items of a subgroup. The node
//                                             closes (binds) the element ranges row, column and k,
//                                             which are not loops: lay_out_tiles replaces them by
//                                             lanes.
#pragma once

#include <optional>
#include <span>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// For each bit of a lane's number and of a work-item's number in its subgroup: the bit of m, n or
/// k that it is, as PGR_LANE_BIT; 0 for none.
struct LaneBits {
  std::span<const uint8_t> lane, item;
};
struct LaneLayout {
  LaneBits a, b, c;
};

struct TensorCore {
  uint32_t number;  // index in the device's table
  int64_t m, n, k, items;
  DType input;
  uint32_t lanes_a, lanes_b, lanes_c;
  bool rounds_inputs;
  LaneLayout layout;  // points into the device's capabilities
};

/// Tensor core `number` of the device; nothing if there is none or kernels cannot use it.
std::optional<TensorCore> find_tensor_core(const pgr_device_caps& caps, uint32_t number);

/// The coordinate along `axis` (PGR_LANE_AXIS_*) of lane `lane` of work-item `item`, an expression.
Id coordinate_along(Graph& g, const LaneBits& bits, uint32_t axis, Id item, uint32_t lane);

/// The same for a constant work-item.
int64_t coordinate_of(const LaneBits& bits, uint32_t axis, uint32_t item, uint32_t lane);

/// Whether a Wmma is reachable from `root`.
bool has_wmma(const Graph& g, Id root);

/// Axis numbers from here on belong to element ranges.
inline constexpr uint32_t kFirstElement = 1u << 20;
inline bool is_element(const Node& n) {
  return n.op == Op::Range && range_axis(n) >= kFirstElement;
}

/// Whether the node is a product of whole tiles.
inline bool is_of_tiles(const Graph& g, Id id) {
  return g[id].op == Op::Wmma && g.sources(id).size() > 3;
}

struct TileProduct {
  Id a, b, start, row, column, k, item;
};
TileProduct tile_product(const Graph& g, Id wmma);

/// The Wmma a · b + start of whole tiles; `a` and `b` are over the element ranges.
Id make_tile_product(Graph& g, const TensorCore& core, const TileProduct& parts);

/// Turns products of whole tiles into products of each work-item's lanes. Of an operand's lanes
/// only pairs of ungated consecutive elements become one load, of two lanes.
void lay_out_tiles(Kernel& kernel);

/// The sum of lane products: each product starts from the one before. The own `start` of all but
/// the first must be zeros; it is dropped.
Id chain_products(Graph& g, std::span<const Id> products);

}  // namespace plugrad::codegen
