/// Windows over images: the argument types and settings of convolutions, pooling and resizing.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad {

/// A setting of a window's axes: one number for all of them, or one an axis, outermost first.
class PerAxis {
 public:
  template <std::integral T>
  PerAxis(T all) : list_{static_cast<int64_t>(all)} {}
  PerAxis(std::initializer_list<int64_t> each) : list_(each) {}
  PerAxis(std::vector<int64_t> each) : list_(std::move(each)) {}
  const std::vector<int64_t>& list() const { return list_; }

 private:
  std::vector<int64_t> list_;
};
using Pair = PerAxis;  ///< of a two-dimensional window: one number, or {height, width}

/// What is added around an image; negative numbers cut. One number for all sides, one an axis
/// ({height, width}), a pair {begin, end} an axis, or begin and end of each axis in one list, the
/// last axis first ({left, right, top, bottom}). "same": what keeps the sizes of the image at
/// stride 1, an odd one at the end.
class Padding {
 public:
  using Sides = std::vector<std::pair<int64_t, int64_t>>;
  template <std::integral T>
  Padding(T all) : list_{static_cast<int64_t>(all)} {}
  Padding(std::initializer_list<int64_t> list) : list_(list) {}
  Padding(std::vector<int64_t> list) : list_(std::move(list)) {}
  Padding(std::initializer_list<std::pair<int64_t, int64_t>> sides) : sides_(sides) {}
  Padding(Sides sides) : sides_(std::move(sides)) {}
  Padding(const char* name) : name_(name) {}
  const std::vector<int64_t>& list() const { return list_; }
  const Sides& sides() const { return sides_; }
  const char* name() const { return name_; }  ///< null unless made of one

 private:
  std::vector<int64_t> list_;
  Sides sides_;
  const char* name_ = nullptr;
};

/// Settings of convolutions.
struct ConvOptions {
  PerAxis stride = 1;
  Padding padding = 0;
  PerAxis dilation = 1;
  int64_t groups = 1;
  /// Of products, their sum and the result. Not given: the operands' common dtype, where halves are
  /// summed in f32 and small integers in 32 bits.
  std::optional<DType> dtype = {};
};

/// Settings of transposed convolutions: those of the convolution that goes the other way.
struct ConvTransposeOptions {
  PerAxis stride = 1;
  Padding padding = 0;         ///< is cut off the result
  PerAxis output_padding = 0;  ///< is added to the end of each axis of the result
  PerAxis dilation = 1;
  int64_t groups = 1;
  std::optional<DType> dtype = {};  ///< as in ConvOptions
};

/// Settings of pooling.
struct PoolOptions {
  PerAxis stride = {};  ///< the kernel's size when not given
  Padding padding = 0;
  PerAxis dilation = 1;
  /// One window more where a rest is left: it leaves the image, and begins before its end.
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< of averages: whether padding counts as elements
};

/// Settings of unpooling: those of the pooling that it undoes.
struct UnpoolOptions {
  PerAxis stride = {};  ///< the kernel's size when not given
  Padding padding = 0;
  /// Sizes of the image. Not given: (size - 1) stride + dilation (kernel - 1) + 1 - padding.
  std::vector<int64_t> output_size = {};
  PerAxis dilation = 1;
};

/// How interpolate reads between elements.
enum class Interpolation : uint8_t {
  Nearest,       ///< element floor(place * old / new)
  NearestExact,  ///< element floor((place + 1/2) * old / new)
  Linear,        ///< weighs the two neighbours along each axis: linear, bilinear, trilinear
};

/// Settings of interpolate: sizes of the last axes, or factors, one for all axes after the second.
struct InterpolateOptions {
  std::vector<int64_t> size = {};
  std::vector<double> scale = {};
  Interpolation mode = Interpolation::Nearest;
  bool align_corners = false;  ///< of Linear: whether first and last elements stay at the corners
};

}  // namespace plugrad
