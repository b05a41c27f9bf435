// Edge values of each dtype.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::dtypes {

using Bits = std::vector<uint64_t>;  // same representation as constants in graph.h

/// Zeros, ones, extremes, NaN, infinities, denormals, ties, neighbours of powers of two.
Bits edges(DType dtype);

/// All values of a dtype of 8 or 16 bits.
Bits every_value(DType dtype);

/// True if docs/kernel-ir.md specifies the result of casting the value.
bool cast_is_defined(uint64_t bits, DType from, DType to);

}  // namespace plugrad::dtypes
