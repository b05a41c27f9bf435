// The gradient of max pooling. The window view repeats rows of the image (reshape, expand, shrink):
// the generic rules would add overlapping views of whole images, mostly zeros. Instead, each
// element of the image reads the windows that contain it:
//   dx[h] = sum over windows o with h = o * stride + k * dilation of x[h] == y[o] ? share[o] : 0.
#pragma once

#include <functional>
#include <optional>

#include "autodiff/windows.h"

namespace plugrad::autodiff {

/// Max over the windows of the last axes of an image.
struct MaxPooling {
  Id image = kNoId;
  Windows windows;
  List padding = {};  // of the image, before and after each axis of windows
};

/// The pooling that this Reduce computes, or none. The padding of an image is part of the pooling
/// if `may_skip` holds for the padded image: then its gradient is not wanted.
std::optional<MaxPooling> match_max_pooling(Context& context, Id node,
                                            const std::function<bool(Id)>& may_skip);

/// The gradient of the image. `y` holds the maxima, `share` the gradient of each element equal to a
/// maximum; both have the shape of the Reduce.
Id max_pooling_gradient(Context& context, const MaxPooling& pooling, Id y, Id share);

}  // namespace plugrad::autodiff
