// SPDX-License-Identifier: Apache-2.0
// Converts every float dtype of kernel IR from and to double, rounding to nearest even.
#pragma once

#include <cstdint>
#include <string>

namespace plugrad::sdk {

// Bits of the value of `dtype` (a float PGR_DTYPE_*) nearest to `value`, ties to even. Overflow
// gives infinity, or NaN for f8e4m3, which has no infinity. A NaN becomes a quiet NaN of the same
// sign.
uint64_t encode_float(uint32_t dtype, double value);

// The exact value of the bits.
double decode_float(uint32_t dtype, uint64_t bits);

// The shortest text that reads back as the same double: "1.5", "inf", "nan".
std::string print_float(double value);

}  // namespace plugrad::sdk
