// The gradient of a maximum over windows. The view of windows repeats rows of the image (reshape,
// expand, shrink), so the generic rules would add up overlapping views of whole images, most of
// which are zeros between windows. Here each element of the image reads the windows it lies in:
//   dx[h] = sum over windows o with h = o * stride + k * dilation of x[h] == y[o] ? share[o] : 0.
#pragma once

#include <functional>
#include <optional>

#include "gradient/windows.h"

namespace plugrad::autodiff {

/// Max over the windows of the last axes of an image.
struct MaxPooling {
  Id image = kNoId;
  Windows windows;
  List padding = {};  // of the image, before and after each axis of windows
};

/// The pooling that this Reduce is of, if it is one. Padding that `may_skip` holds for belongs to
/// it: nobody asks what flows to the padded image.
std::optional<MaxPooling> match_max_pooling(Context& context, Id node,
                                            const std::function<bool(Id)>& may_skip);

/// What flows to the image. `y` is the maximum and `share` the part that each of the equal maxima
/// of a window takes, both in the shape of the Reduce.
Id max_pooling_gradient(Context& context, const MaxPooling& pooling, Id y, Id share);

}  // namespace plugrad::autodiff
