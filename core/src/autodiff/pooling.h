// The gradient of a maximum over windows. The view of windows repeats rows of the image (reshape,
// expand, shrink), so the generic rules would add up overlapping views of whole images, most of
// which are zeros between windows. Here each element of the image reads the windows it lies in:
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

/// The pooling of which this Reduce takes the maxima, or nothing. A padded image counts as part of
/// the pooling where `may_skip` holds for it: then no gradient of the padded image is wanted.
std::optional<MaxPooling> match_max_pooling(Context& context, Id node,
                                            const std::function<bool(Id)>& may_skip);

/// The gradient of the image. `y` holds the maxima and `share` the gradient that each element equal
/// to a maximum receives, both in the shape of the Reduce.
Id max_pooling_gradient(Context& context, const MaxPooling& pooling, Id y, Id share);

}  // namespace plugrad::autodiff
