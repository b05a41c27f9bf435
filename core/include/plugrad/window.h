/// Argument types and options of windows over images: convolutions, pooling and resizing.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include "plugrad/dtype.h"

namespace plugrad {

/// An option of a window: one number for all axes, or one for each axis, outermost first.
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
using Pair = PerAxis;  ///< for a two-dimensional window: one number, or {height, width}

/// Padding of an image; negative numbers crop. One number for all sides, one for each axis
/// ({height, width}), a pair {begin, end} for each axis, or one list of begin and end for each
/// axis, the last axis first ({left, right, top, bottom}). "same" keeps the sizes of the image at
/// stride 1; if the total is odd, the extra element is at the end.
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
  const char* name() const { return name_; }  ///< null unless constructed from a name

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
  /// Dtype of products, sums and result. Not given: the operands' common dtype, where halves are
  /// summed in f32 and small integers in 32 bits.
  std::optional<DType> dtype = {};
};

/// Options of transposed convolutions: those of the convolution whose gradient it is.
struct ConvTransposeOptions {
  PerAxis stride = 1;
  Padding padding = 0;         ///< cropped from the result
  PerAxis output_padding = 0;  ///< added to the end of each axis of the result
  PerAxis dilation = 1;
  int64_t groups = 1;
  std::optional<DType> dtype = {};  ///< as in ConvOptions
};

/// Settings of pooling.
struct PoolOptions {
  PerAxis stride = {};  ///< the kernel's size when not given
  Padding padding = 0;
  PerAxis dilation = 1;
  /// Add a last window for a remainder: it begins before the end of the image and extends past it.
  bool ceil_mode = false;
  bool count_include_pad = true;  ///< for averages: whether padding counts as elements
};

/// Options of unpooling: those of the pooling that it inverts.
struct UnpoolOptions {
  PerAxis stride = {};  ///< the kernel's size when not given
  Padding padding = 0;
  /// Sizes of the image. Not given: (size - 1) stride + dilation (kernel - 1) + 1 - padding.
  std::vector<int64_t> output_size = {};
  PerAxis dilation = 1;
};

/// How interpolate reads between elements.
enum class Interpolation : uint8_t {
  Nearest,       ///< element floor(index * old / new)
  NearestExact,  ///< element floor((index + 1/2) * old / new)
  Linear,        ///< weights the two neighbours along each axis: linear, bilinear, trilinear
};

/// Options of interpolate: sizes of the last axes, or factors; one number is for all axes after the
/// second.
struct InterpolateOptions {
  std::vector<int64_t> size = {};
  std::vector<double> scale = {};
  Interpolation mode = Interpolation::Nearest;
  /// for Linear: align the first and last elements of input and output
  bool align_corners = false;
};

}  // namespace plugrad
