// SPDX-License-Identifier: Apache-2.0
// Floats as bits: every float dtype of kernel IR to double and back, rounding to nearest even.
#pragma once

#include <cstdint>
#include <string>

namespace plugrad::sdk {

// Bits of the value of `dtype` (a float PGR_DTYPE_*) nearest to `value`, ties to even. Beyond the
// range: infinity, for f8e4m3 (which has none) NaN. A NaN stays a quiet NaN of the same sign.
uint64_t encode_float(uint32_t dtype, double value);

// The exact value of the bits.
double decode_float(uint32_t dtype, uint64_t bits);

// Shortest text that reads back as the same double: "1.5", "inf", "nan".
std::string print_float(double value);

}  // namespace plugrad::sdk
