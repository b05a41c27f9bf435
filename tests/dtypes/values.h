// Values of each dtype that go wrong first.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad::dtypes {

using Bits = std::vector<uint64_t>;  // as graph.h keeps constants

/// Zeros, ones, extremes, NaN, infinities, denormals, halfway cases, neighbours of powers of two.
Bits edges(DType dtype);

/// All values of a dtype of 8 or 16 bits.
Bits every_value(DType dtype);

/// Whether docs/kernel-ir.md says what a cast of the value gives.
bool cast_is_defined(uint64_t bits, DType from, DType to);

}  // namespace plugrad::dtypes
