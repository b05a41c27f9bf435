/// Windows over images: the argument types and settings of convolutions and pooling.
#pragma once

#include <cstdint>
#include <optional>

namespace plugrad {

/// A setting of a two-dimensional window: one number for both axes, or {height, width}.
struct Pair {
  Pair(int64_t both) : height(both), width(both) {}
  Pair(int64_t height_, int64_t width_) : height(height_), width(width_) {}
  int64_t height, width;
};

/// Zeros around an image: one number for all sides, {height, width}, or {left, right, top, bottom}.
struct Padding {
  Padding(int64_t all) : left(all), right(all), top(all), bottom(all) {}
  Padding(int64_t height, int64_t width) : left(width), right(width), top(height), bottom(height) {}
  Padding(int64_t left_, int64_t right_, int64_t top_, int64_t bottom_)
      : left(left_), right(right_), top(top_), bottom(bottom_) {}
  int64_t left, right, top, bottom;
};

/// Settings of convolutions and pooling.
struct ConvOptions {
  Pair stride = 1;
  Padding padding = 0;
  Pair dilation = 1;
  int64_t groups = 1;
};
struct PoolOptions {
  std::optional<Pair> stride = {};  ///< the kernel's size when not given
  Padding padding = 0;
  Pair dilation = 1;
  /// Windows that begin inside the padded image count, even if they leave it.
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< of averages: whether padding counts as elements
};

}  // namespace plugrad
