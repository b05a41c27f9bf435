// How far apart the rows of a copy in local memory lie. Local memory is banks, each of which gives
// one word at a time: items of a subgroup that read different words of one bank wait for each
// other.
#pragma once

#include <functional>

#include "codegen/analysis/work_items.h"
#include "codegen/transforms/tile_coordinates.h"

namespace plugrad::codegen {

/// What the items of a subgroup read of an operand at once: for each access of an item, the value
/// of every range that the operand varies over.
struct AccessPattern {
  uint32_t items = 1, accesses = 1;
  std::function<int64_t(Id range, uint32_t item, uint32_t access)> value;
};
AccessPattern access_pattern(const Kernel& kernel, const std::vector<WorkItemAxis>& axes,
                             Id operand);

/// Elements from one row to the next: the row, and as few as let the items of a subgroup wait
/// least, in whole words and vectors of `width`.
int64_t padded_row(const pgr_device_caps& caps, std::span<const Coordinate> coordinates,
                   const AccessPattern& readers, DType dtype, int64_t width);

/// The step of a coordinate where rows, which the last one runs along, lie `row` elements apart.
int64_t stride_in_rows(std::span<const Coordinate> coordinates, int64_t row, size_t coordinate);

}  // namespace plugrad::codegen
