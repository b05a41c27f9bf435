// Sums along the rows of a matrix that is read once.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// For a kernel with its register tile. Returns how many output loops, from the outermost on, may
/// run in parallel; SIZE_MAX where the kernel is no such sum and stays as it is.
size_t sum_columns(Kernel& kernel);

}  // namespace plugrad::codegen
