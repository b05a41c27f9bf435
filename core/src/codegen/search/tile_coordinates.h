// What a copied operand is indexed by.
#pragma once

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
/// overlap, make one together.
std::vector<Coordinate> tile_coordinates(const Kernel& kernel, Id operand, uint32_t slot,
                                         const std::vector<Id>& ranges);

}  // namespace plugrad::codegen
