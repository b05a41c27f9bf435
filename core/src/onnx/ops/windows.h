// The window of a convolution or pool.
#pragma once

#include <initializer_list>
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

/// That of the weight. Errors: User if the attribute kernel_shape is another one.
std::vector<int64_t> kernel_of_weight(Call& call, const Tensor& weight);

/// Errors: User unless x has the kernel's axes behind the batch and the channels, and each list a
/// number for each of them.
void require_axes(Call& call, const Tensor& x, size_t axes,
                  std::initializer_list<std::vector<int64_t>> lists);

/// The axes behind the batch and the channels.
Axes spatial_axes(const Tensor& x);

/// x with its last axis, the channels, behind the batch.
Tensor channels_first(const Tensor& x);
/// x with the axis behind the batch, the channels, as the last one.
Tensor channels_last(const Tensor& x);

/// The means of the windows that an AveragePool node has in x.
Tensor average_pooled(Call& call, const Tensor& x);

}  // namespace plugrad::onnx
