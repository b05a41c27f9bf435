// Adds execution modes to a kernel's module that GLSL cannot express.
#pragma once

#include <cstdint>
#include <vector>

namespace plugrad::vulkan {

// Per float width (16, 32, 64): modes to request.
struct FloatModes {
  bool keep_special[3] = {};  // signed zeros, infinities, NaN
  bool round_to_even[3] = {};
  bool keep_denormals[3] = {};
};

// Adds execution modes for the module's float widths, and NoContraction to all float arithmetic,
// also if contraction is allowed: without it Mesa's drivers reorder more than a product and its
// sum. The words must be a module from glslang; a truncated one is returned unchanged.
std::vector<uint32_t> with_float_modes(const std::vector<uint32_t>& words, const FloatModes& modes);

// Reads the work-group size from the module; false if it has none.
bool read_local_size(const std::vector<uint32_t>& words, uint32_t out[3]);

}  // namespace plugrad::vulkan
