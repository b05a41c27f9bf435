// SPDX-License-Identifier: Apache-2.0
// Tensor cores as specified in docs/kernel-ir.md: which element of A, B and C each lane of each
// work-item holds.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/device.h"

namespace plugrad::sdk {

// Maps the bits of a lane's index, then those of a work-item's, to coordinates of a tile.
struct TileLayout {
  std::span<const uint8_t> bits;
  uint32_t lanes;
};
TileLayout layout_of_a(const pgr_tensor_core& core);
TileLayout layout_of_b(const pgr_tensor_core& core);
TileLayout layout_of_c(const pgr_tensor_core& core);

struct MatrixPlace {
  uint32_t m = 0, n = 0, k = 0;
};
MatrixPlace place_of(const TileLayout& layout, uint32_t item, uint32_t lane);

// Lane bits, a bar, work-item bits: "k0 m3 | k1 m0" maps lane bit 0 to bit 0 of k and lane bit 1 to
// bit 3 of m; "-" maps a bit to nothing. Throws StatusError (INVALID_ARGUMENT) for malformed text.
void set_layout(uint8_t (&layout)[24], std::string_view text);

// True if kernels of this version can use records of this kind and dtypes; other records only keep
// their index.
bool is_used(const pgr_tensor_core& core);

// Reason that kernels cannot use the record; empty: they can.
std::string problem_of(const pgr_tensor_core& core);

// A value of A or B as the core multiplies it: rounded to `fraction_bits`, to nearest, ties away
// from zero.
float rounded_input(float value, uint32_t fraction_bits);
double input_value(const pgr_tensor_core& core, uint64_t bits);

// The tensor cores of a device's capabilities, with their indices unchanged. Only the fields that
// this header knows are copied.
std::vector<pgr_tensor_core> tensor_cores_of(const pgr_device_caps& caps);

// 16 x 8 tiles on warps of 32 work-items, as mma.sync of PTX: 16 deep for f16 and bf16; 8 deep for
// f32 rounded to TF32 (10 fraction bits).
pgr_tensor_core make_warp_core(uint32_t dtype);

}  // namespace plugrad::sdk
