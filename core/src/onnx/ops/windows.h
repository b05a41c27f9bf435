// The window of a convolution or pool.
#pragma once

#include <vector>

#include "onnx/import/call.h"
#include "plugrad/window.h"

namespace plugrad::onnx {

/// Everything has one number for each axis of the kernel.
struct Window {
  std::vector<int64_t> kernel, strides, dilations;
  Padding::Sides pads;
};

/// The node's window over x: (batch, channels, axes of the kernel).
Window window_of(Call& call, const Tensor& x, const std::vector<int64_t>& kernel);

/// The attribute kernel_shape, or else the weight's.
std::vector<int64_t> kernel_of_weight(Call& call, const Tensor& weight);

/// The axes behind the batch and the channels.
Axes spatial_axes(const Tensor& x);

/// The means of the windows that an AveragePool node has in x.
Tensor average_pooled(Call& call, const Tensor& x);

}  // namespace plugrad::onnx
