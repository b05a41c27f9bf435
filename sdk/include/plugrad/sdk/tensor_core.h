// SPDX-License-Identifier: Apache-2.0
// Tensor cores as docs/kernel-ir.md describes them: which element of A, B and C each work-item
// holds in which lane.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plugrad/plugin_api/device.h"

namespace plugrad::sdk {

// A tile as work-items hold it: the bits of the lane's number, then those of the work-item's.
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

// Lanes, then behind a bar work-items: "k0 m3 | k1 m0" puts bit 0 of the lane into bit 0 of k, bit
// 1 into bit 3 of m; "-" is a bit that moves nothing. Throws StatusError (INVALID_ARGUMENT) for
// text that is none.
void set_layout(uint8_t (&layout)[24], std::string_view text);

// Whether kernels of this version use records of its kind and dtypes; others only keep their place.
bool is_used(const pgr_tensor_core& core);

// Why the record is no tensor core that kernels can use; empty: it is one.
std::string problem_of(const pgr_tensor_core& core);

// A value of A or B as the core multiplies it: rounded to so many bits of fraction, to nearest,
// ties away from zero.
float rounded_input(float value, uint32_t fraction_bits);
double input_value(const pgr_tensor_core& core, uint64_t bits);

// The tensor cores of a device's capabilities, each in its place, as far as this header knows their
// fields.
std::vector<pgr_tensor_core> tensor_cores_of(const pgr_device_caps& caps);

// 16 x 8 tiles by warps of 32 work-items, as mma.sync of PTX takes them: 16 deep for f16 and bf16;
// 8 deep for f32, of which 10 bits of the fraction count.
pgr_tensor_core make_warp_core(uint32_t dtype);

}  // namespace plugrad::sdk
