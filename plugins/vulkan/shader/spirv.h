// What a kernel's module needs and GLSL cannot say.
#pragma once

#include <cstdint>
#include <vector>

namespace plugrad::vulkan {

// By the width of the floats, 16, 32 and 64: whether to ask for it.
struct FloatModes {
  bool keep_special[3] = {};  // signed zeros, infinities, NaN
  bool round_to_even[3] = {};
  bool keep_denormals[3] = {};
};

// Adds execution modes for the widths that the module has, and NoContraction to its arithmetic on
// floats, also where contraction is allowed: without it Mesa's drivers reorder far more than a
// product and its sum. The words are a module of glslang's; one that is cut short comes back as it
// is.
std::vector<uint32_t> with_float_modes(const std::vector<uint32_t>& words, const FloatModes& modes);

// The size of a group, from the module; false where it does not say.
bool read_local_size(const std::vector<uint32_t>& words, uint32_t out[3]);

}  // namespace plugrad::vulkan
