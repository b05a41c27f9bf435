// Converts a value to the one that a dtype can hold: for constants, folding and the evaluator.
#pragma once

#include <cstdint>

#include "base/internal.h"
#include "plugrad/dtype.h"

namespace plugrad {

/// `value` wrapped to the dtype's bits and sign- or zero-extended; Bool: 0 or 1; Index and 64-bit:
/// unchanged.
int64_t round_int(int64_t value, DType dtype);

/// `value` rounded to nearest even in the float dtype; overflow gives infinity (NaN for f8e4m3,
/// which has no infinity).
PLUGRAD_INTERNAL double round_float(double value, DType dtype);

/// `value` truncated towards zero; outside the dtype's range it saturates and NaN gives 0.
int64_t float_to_int(double value, DType dtype);

/// Storage bits of a 16-bit or 8-bit float, and back.
PLUGRAD_INTERNAL uint16_t encode_small_float(double value, DType dtype);
double decode_small_float(uint16_t bits, DType dtype);

}  // namespace plugrad
