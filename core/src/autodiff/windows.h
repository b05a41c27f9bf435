// Windows over the last axes of an image, as a view by movement nodes.
#pragma once

#include <optional>
#include <vector>

#include "autodiff/gradient.h"
#include "base/internal.h"

namespace plugrad::autodiff {

using List = std::vector<int64_t>;

/// One entry for each axis, outermost first.
struct Windows {
  List kernel, stride, dilation;
  size_t axes() const { return kernel.size(); }
  /// Distance from the first to the last element of a window, plus 1.
  int64_t span(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  /// Windows that fit an axis of `size`; 0 for none.
  int64_t count(size_t axis, int64_t size) const {
    return size < span(axis) ? 0 : (size - span(axis)) / stride[axis] + 1;
  }
};

/// (…, h, w) -> (…, oh, ow, kh, kw): element (o, k) of an axis is o * stride + k * dilation of the
/// source.
Id window_view(Context& context, Id image, const Windows& windows);

/// Guesses stride and dilation of windows of `image` from a view that contains window_view. The
/// caller proves the guess by building the view again.
void read_steps(Context& context, Id view, Id image, Windows& windows);

struct WindowsOfImage {
  Id image;
  Windows windows;
};
/// The image from which window_view made this node, if any.
PLUGRAD_INTERNAL std::optional<WindowsOfImage> match_windows(Context& context, Id view,
                                                             const List& kernel);

// Movement nodes, except those without effect.
PLUGRAD_INTERNAL List shape_of(Context& context, Id id);
Id move(Context& context, Op op, Id x, const List& list);
/// The first `sizes` elements of the axes.
Id crop_to(Context& context, Id x, const List& sizes);
/// `lead` and `rest` in one list.
PLUGRAD_INTERNAL List joined(List lead, const List& rest);

}  // namespace plugrad::autodiff
