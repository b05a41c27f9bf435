// Reads tensors between and beyond their elements.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::onnx {

enum class SamplingMode : uint8_t { Nearest, Linear, Cubic };
/// Beyond the ends of an axis: zeros, the element at the end, or the mirrored elements.
enum class SamplingPadding : uint8_t { Zeros, Border, Reflection };

struct Sampling {
  SamplingMode mode = SamplingMode::Linear;
  SamplingPadding padding = SamplingPadding::Zeros;
  bool aligns_corners = false;  ///< mirrors at the centre of an end's element, or else at its edge
};

/// x (n, channels, axes…) at p points: `at` has their coordinates (n, p) of each axis, in elements.
/// Shape: (n, channels, p).
Tensor sampled(const Tensor& x, const std::vector<Tensor>& at, const Sampling& how);

}  // namespace plugrad::onnx
