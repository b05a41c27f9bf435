// What a tile's stores take: shuffles where lanes lie apart, and lines that come through the caches
// more than once.
#include <algorithm>
#include <bit>
#include <cmath>

#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {
namespace {

constexpr int64_t kWaiting = 4;  // neighbours of a result, in scratch

}  // namespace

// Of a store whose lanes lie apart, the axis along which its elements are neighbours, and how many
// copies of it are stored together; for a finished sum always some, since it may wait in scratch
// while no schedule is there yet.
CostModel::Beside CostModel::beside(const Operation& operation, const Tile& tile) const {
  const size_t lanes = tile.vector_axis;
  if (operation.kind != Operation::Kind::Store || lanes >= operation.last || is_reduce(lanes) ||
      works_in_groups(*kernel_.caps))
    return {};
  if (operation.stride[lanes] == 1 || operation.stride[lanes] == kNear ||
      operation.stride[lanes] == kIrregular)
    return {};
  for (size_t a = 0; a < operation.last; ++a) {
    if (operation.stride[a] != 1) continue;
    const bool waits = has_reduce_ && kernel_.caps->private_bytes != 0 && tile.outer.empty();
    const int64_t copies = waits ? std::max<int64_t>(tile.amounts[a], kWaiting) : tile.amounts[a];
    return {a, std::min({copies, sizes_[a], lanes_})};
  }
  return {};
}

// How many of them one instruction stores at most: a power of two.
int64_t CostModel::neighbours(const Operation& operation, const Tile& tile) const {
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(beside(operation, tile).copies)));
}

// Shuffles and stores for each vector of such a store; 0 where its lanes are stored one by one.
double CostModel::transposing(const Operation& operation, const Tile& tile) const {
  const int64_t together = neighbours(operation, tile);
  if (together == 1) return 0;
  return std::log2(static_cast<double>(together)) +
         static_cast<double>(lanes_) / static_cast<double>(together);
}

size_t CostModel::axis_beside_lanes(const Tile& tile) const {
  for (const Operation& operation : operations_) {
    if (operation.kind != Operation::Kind::Store || tile.vector_axis >= operation.last ||
        works_in_groups(*kernel_.caps))
      continue;
    for (size_t a = 0; a < operation.last; ++a)
      if (a != tile.vector_axis && operation.stride[a] == 1) return a;
  }
  return SIZE_MAX;
}

// Where lanes lie apart, a few neighbours are stored in each of many lines, then the next few;
// lanes that are neighbours fill their lines.
double CostModel::store_traffic(const Operation& operation, const Tile& tile) const {
  if (tile.vector_axis < operation.last && operation.stride[tile.vector_axis] == 1) return 0;
  cost::Nest nest{sizes_, tile.amounts, loop_order(tile)};
  for (size_t a = 0; a < sizes_.size(); ++a)
    if (is_reduce(a)) nest.sizes[a] = nest.tile[a] = 1;
  if (const auto [axis, copies] = beside(operation, tile); axis != SIZE_MAX)
    nest.tile[axis] = copies / std::popcount(static_cast<uint64_t>(copies));
  return cost::writing_again(nest, operand_of(operation, tile), kernel_.machine());
}

}  // namespace plugrad::codegen
