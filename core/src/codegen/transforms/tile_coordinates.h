// What a copied operand is indexed by.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// offset + sum of scale * range, from 0 below extent.
struct Coordinate {
  std::vector<std::pair<Id, int64_t>> parts;  // range and scale
  Id base = kNoId;                            // the part of scale 1
  int64_t offset = 0, extent = 1;
  bool is_consecutive = false;  // neighbours are neighbours in memory too
};

/// The coordinates that the operand, an expression over `ranges` with loads of parameter `slot`,
/// depends on: a range each, but ranges that move all its indices and conditions in proportion, and
/// overlap, make one together; with `joins_neighbours` those too of which one goes on where the
/// other ends.
std::vector<Coordinate> tile_coordinates(const Kernel& kernel, Id operand, uint32_t slot,
                                         const std::vector<Id>& ranges,
                                         bool joins_neighbours = false);

/// Where the kernel finds its element in a copy of the tile; `stride` is a coordinate's, by number.
Id index_in_copy(Graph& g, std::span<const Coordinate> coordinates,
                 const std::function<int64_t(size_t)>& stride);

}  // namespace plugrad::codegen
