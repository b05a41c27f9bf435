// The layout of a copied tile: its coordinates and the distance of its rows in local memory.
#pragma once

#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "codegen/analysis/work_items.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// offset + sum of scale * range, from 0 below extent.
struct Coordinate {
  std::vector<std::pair<Id, int64_t>> parts;  // range and scale
  Id base = kNoId;                            // the range of scale 1
  int64_t offset = 0, extent = 1;
  bool is_consecutive = false;  // consecutive values are consecutive in memory
};

/// The coordinates of the operand, an expression over `ranges` that loads parameter `slot`: one per
/// range, but ranges that move all indices and conditions in proportion and overlap form one
/// coordinate. With `joins_neighbours` also those where one continues at the end of the other.
std::vector<Coordinate> tile_coordinates(const Kernel& kernel, Id operand, uint32_t slot,
                                         const std::vector<Id>& ranges,
                                         bool joins_neighbours = false);

/// The index of the kernel's element in a copy of the tile; `stride` gives a coordinate's stride.
Id index_in_copy(Graph& g, std::span<const Coordinate> coordinates,
                 const std::function<int64_t(size_t)>& stride);

/// The elements of an operand that a subgroup reads at once: the value of each range for each
/// work-item and access.
struct AccessPattern {
  uint32_t items = 1, accesses = 1;
  std::function<int64_t(Id range, uint32_t item, uint32_t access)> value;
};
AccessPattern access_pattern(const Kernel& kernel, const std::vector<WorkItemAxis>& axes,
                             Id operand);

/// Bank-conflict padding: the distance of rows in elements, a multiple of `width` and of whole
/// words, with the fewest bank conflicts and then the least padding. A bank serves one word at a
/// time; work-items of a subgroup that need different words of one bank wait.
int64_t padded_row(const pgr_device_caps& caps, std::span<const Coordinate> coordinates,
                   const AccessPattern& readers, DType dtype, int64_t width);

/// The stride of a coordinate if rows, along the last coordinate, are `row` elements apart.
int64_t stride_in_rows(std::span<const Coordinate> coordinates, int64_t row, size_t coordinate);

}  // namespace plugrad::codegen
