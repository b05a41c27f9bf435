// Sums along the rows of a matrix that is read once.
#pragma once

#include "codegen/tiling/cost_model.h"

namespace plugrad::codegen {

/// Where the tile leaves sums of columns of a matrix that no cache holds, for one row or for few
/// that it expands whole: one vector of columns, and several rows of the matrix in a round. Returns
/// whether it does.
bool narrow_to_columns(const Kernel& kernel, int64_t lanes, Tile& tile);

/// For a kernel with its register tile. Returns how many output loops, from the outermost on, may
/// run in parallel; SIZE_MAX where the kernel is no such sum and stays as it is.
size_t schedule_column_reduction(Kernel& kernel);

}  // namespace plugrad::codegen
