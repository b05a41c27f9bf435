// Convolution as nodes: how its window view is written, how it is found again, and its derivatives.
//
// The view of windows repeats rows of the image (reshape, expand, shrink), so the generic rules
// would give a data gradient that adds many overlapping views. Here it is a convolution of the
// padded gradient with the flipped weight: one reduction over (out channels, kernel height, kernel
// width).
#pragma once

#include <array>
#include <optional>

#include "gradient/gradient.h"

namespace plugrad::autodiff {

/// Windows over the last two axes.
struct Windows {
  std::array<int64_t, 2> kernel, stride{1, 1}, dilation{1, 1};
  /// How many windows fit an axis of `size`; below 1 when none does.
  int64_t count(size_t axis, int64_t size) const {
    return (size - dilation[axis] * (kernel[axis] - 1) - 1) / stride[axis] + 1;
  }
};

/// (…, h, w) -> (…, oh, ow, kh, kw): element (o, k) of an axis is o * stride + k * dilation of the
/// source.
Id window_view(Context& context, Id image, const Windows& windows);

/// Cross-correlation without padding: image (n, groups * ci, h, w), weight (groups * co, ci, kh,
/// kw).
struct Convolution {
  Id image = kNoId, weight = kNoId;
  int64_t groups = 1;
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1};
};

/// One Reduce over the last three axes of (n, groups, co, oh, ow, ci, kh, kw), which stay with
/// size 1.
Id build_convolution(Context& context, const Convolution& convolution);

/// The convolution that build_convolution turned into this node, if it is one.
std::optional<Convolution> match_convolution(Context& context, Id node);

struct ConvolutionGradient {
  Id image = kNoId, weight = kNoId;  // kNoId where not asked for
};
/// `gradient` is that of the Reduce node `node`.
ConvolutionGradient convolution_gradient(Context& context, const Convolution& convolution, Id node,
                                         Id gradient, bool to_image, bool to_weight);

}  // namespace plugrad::autodiff
