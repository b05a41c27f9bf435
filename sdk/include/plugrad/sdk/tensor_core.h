// Lane layouts of tensor cores as published in docs/kernel-ir.md: which element of A, B and C each
// work-item holds in which lane.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugrad/plugin_api/device.h"

namespace plugrad::sdk {

// Numbers of pgr_tensor_core.layout.
inline constexpr uint32_t kLayoutPairs = 1;    // 16 x 8 x 16: two neighbours along k lie together
inline constexpr uint32_t kLayoutSingles = 2;  // 16 x 8 x 8 of f32, rounded to 10 bits of fraction

// A layout is bits. A fragment's text lists where each bit of the lane's number goes, then behind
// "|" each bit of the work-item's number, lowest first: "k0 m3 | k1 m0" puts bit 0 of the lane into
// bit 0 of k and bit 1 into bit 3 of m.
struct TensorCoreLayout {
  uint32_t number;
  std::string_view a, b, c;
  bool rounds_inputs;  // A and B to 10 bits of fraction, to nearest, ties away from zero
};
std::span<const TensorCoreLayout> tensor_core_layouts();
// nullptr: not published.
const TensorCoreLayout* find_layout(uint32_t number);

struct MatrixPlace {
  uint32_t m = 0, n = 0, k = 0;
};
// Of a fragment's element.
MatrixPlace place_of(std::string_view fragment, uint32_t item, uint32_t lane);

// Why the record is no tensor core that kernels can use; empty: it is one.
std::string problem_of(const pgr_tensor_core& core);

// An f32 as a layout that rounds its inputs takes it.
float rounded_input(float value);

// The tensor cores of a device's capabilities, as far as this header knows their fields.
std::span<const pgr_tensor_core> tensor_cores_of(const pgr_device_caps& caps);

// 16 x 8 tiles by warps of 32 work-items: pairs for f16 and bf16, singles for f32.
pgr_tensor_core make_warp_core(uint32_t dtype);

}  // namespace plugrad::sdk
