// Windows over the last axes of an image, and the movement nodes that give a view of them.
#pragma once

#include <optional>
#include <vector>

#include "autodiff/gradient.h"

namespace plugrad::autodiff {

using List = std::vector<int64_t>;

/// One entry an axis, outermost first.
struct Windows {
  List kernel, stride, dilation;
  size_t axes() const { return kernel.size(); }
  /// From the first to the last element of a window.
  int64_t span(size_t axis) const { return dilation[axis] * (kernel[axis] - 1) + 1; }
  /// How many windows fit an axis of `size`; 0 when none does.
  int64_t count(size_t axis, int64_t size) const {
    return size < span(axis) ? 0 : (size - span(axis)) / stride[axis] + 1;
  }
};

/// (…, h, w) -> (…, oh, ow, kh, kw): element (o, k) of an axis is o * stride + k * dilation of the
/// source.
Id window_view(Context& context, Id image, const Windows& windows);

/// Sets stride and dilation of windows of `image` as they are read off a view of them, of which
/// window_view is a part. What is read is a guess; only building the view again proves it.
void read_steps(Context& context, Id view, Id image, Windows& windows);

struct WindowsOfImage {
  Id image;
  Windows windows;
};
/// The image of which window_view gives this node, where it does.
std::optional<WindowsOfImage> match_windows(Context& context, Id view, const List& kernel);

// Movement nodes; none of these adds one that changes nothing.
List shape_of(Context& context, Id id);
Id move(Context& context, Op op, Id x, const List& list);
/// The axes cut to `sizes`, from their beginning.
Id keep(Context& context, Id x, const List& sizes);
/// `lead` and `rest` in one list.
List joined(List lead, const List& rest);

}  // namespace plugrad::autodiff
