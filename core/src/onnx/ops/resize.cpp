// Resize and Upsample: each axis is a product with a matrix of interpolation weights.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

constexpr double kScaleError = 1e-6;  // of a size, from a scale that f32 rounded

// How the elements of one axis are computed.
struct Options {
  std::string_view mode, coordinates, nearest;
  double cubic = -0.75, outside = 0;
  bool excludes_outside = false, is_smoothed = false;
};

struct Axis {
  int64_t from, to;
  double scale, begin, end;  // the last two: of the region that is shown, from 0 to 1
};

double coordinate(const Options& o, const Axis& a, int64_t i) {
  const auto at = static_cast<double>(i), from = static_cast<double>(a.from),
             to = static_cast<double>(a.to);
  double exact_to = a.scale * from;  // before it was rounded down to the size
  if (std::abs(exact_to - to) < kScaleError * to) exact_to = to;
  if (o.coordinates == "asymmetric") return at / a.scale;
  if (o.coordinates == "align_corners") return exact_to == 1 ? 0 : at * (from - 1) / (exact_to - 1);
  if (o.coordinates == "pytorch_half_pixel") return a.to == 1 ? 0 : (at + 0.5) / a.scale - 0.5;
  if (o.coordinates == "half_pixel_symmetric") {
    const double adjustment = to / exact_to, center = from / 2;
    return center * (1 - adjustment) + (at + 0.5) / a.scale - 0.5;
  }
  if (o.coordinates == "tf_half_pixel_for_nn") return (at + 0.5) / a.scale;
  if (o.coordinates == "tf_crop_and_resize")
    return a.to == 1 ? 0.5 * (a.begin + a.end) * (from - 1)
                     : a.begin * (from - 1) + at * (a.end - a.begin) * (from - 1) / (to - 1);
  return (at + 0.5) / a.scale - 0.5;  // half_pixel
}

int64_t nearest(const Options& o, double x) {
  if (o.nearest == "floor") return static_cast<int64_t>(std::floor(x));
  if (o.nearest == "ceil") return static_cast<int64_t>(std::ceil(x));
  const double below = std::floor(x);
  if (x - below == 0.5)
    return static_cast<int64_t>(o.nearest == "round_prefer_ceil" ? below + 1 : below);
  return static_cast<int64_t>(std::round(x));
}

// Keys, R. Cubic convolution interpolation for digital image processing. 1981.
double cubic_weight(double distance, double a) {
  const double x = std::abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return 0;
}

// Adds the weights of the elements that x lies between. With smoothing a weight spans 1 / scale
// elements.
void add_weights(const Options& o, const Axis& a, double x, std::vector<double>& row) {
  const auto put = [&](int64_t place, double weight) {
    if (place < 0 || place >= a.from) {
      if (o.excludes_outside) return;
      place = std::clamp<int64_t>(place, 0, a.from - 1);
    }
    row[static_cast<size_t>(place)] += weight;
  };
  const double reach = o.mode == "cubic" ? 2 : 1;
  const double shrink = o.is_smoothed ? std::min(1.0, a.scale) : 1.0;
  const auto first = static_cast<int64_t>(std::floor(x - reach / shrink)) + 1;
  const auto last = static_cast<int64_t>(std::ceil(x + reach / shrink)) - 1;
  double total = 0;
  std::vector<double> weights;
  for (int64_t place = first; place <= last; ++place) {
    const double distance = (static_cast<double>(place) - x) * shrink;
    double weight =
        o.mode == "cubic" ? cubic_weight(distance, o.cubic) : std::max(0.0, 1 - std::abs(distance));
    if (o.excludes_outside && (place < 0 || place >= a.from)) weight = 0;
    weights.push_back(weight);
    total += weight;
  }
  const bool is_scaled = o.is_smoothed || o.excludes_outside;
  for (size_t i = 0; i < weights.size(); ++i)
    put(first + static_cast<int64_t>(i), is_scaled ? weights[i] / total : weights[i]);
}

Tensor resized(const Tensor& x, int64_t axis, const Axis& a, const Options& o) {
  const bool is_nearest = o.mode == "nearest";
  require_host_elements(is_nearest ? Shape{a.to} : Shape{a.to, a.from});
  std::vector<float> matrix;
  std::vector<int64_t> places;
  std::vector<uint8_t> is_outside;
  for (int64_t i = 0; i < a.to; ++i) {
    poll_interruption();
    const double at = coordinate(o, a, i);
    if (is_nearest) {
      places.push_back(std::clamp<int64_t>(nearest(o, at), 0, a.from - 1));
    } else {
      std::vector<double> row(static_cast<size_t>(a.from), 0);
      add_weights(o, a, at, row);
      for (const double weight : row) matrix.push_back(static_cast<float>(weight));
    }
    is_outside.push_back(o.coordinates == "tf_crop_and_resize" &&
                         (at < 0 || at > static_cast<double>(a.from - 1)));
  }
  Tensor result;
  if (is_nearest) {
    result = x.index_select(axis, Tensor::from(places));
  } else {
    const Tensor weights = Tensor::from(matrix, {a.to, a.from});
    result = x.cast(DType::F32)
                 .transpose(axis, -1)
                 .matmul(weights.transpose())
                 .transpose(axis, -1)
                 .cast(x.dtype());
  }
  if (std::ranges::find(is_outside, 1) == is_outside.end()) return result;
  Shape along(static_cast<size_t>(x.ndim()), 1);
  along[static_cast<size_t>(axis)] = a.to;
  const Tensor outside = Tensor::from(is_outside, along) != 0;
  return outside.where(Tensor(o.outside).cast(x.dtype()), result);
}

Options resize_options(Call& call) {
  const bool is_old = call.opset() < 11;
  Options o;
  o.mode = call.text("mode", "nearest");
  if (o.mode == "bilinear" || o.mode == "trilinear") o.mode = "linear";
  o.coordinates = call.text("coordinate_transformation_mode", is_old ? "asymmetric" : "half_pixel");
  o.nearest = call.text("nearest_mode", is_old ? "floor" : "round_prefer_floor");
  o.cubic = call.number("cubic_coeff_a", -0.75);
  o.outside = call.number("extrapolation_value", 0);
  o.excludes_outside = call.integer("exclude_outside", 0) != 0;
  o.is_smoothed = call.integer("antialias", 0) != 0;
  return o;
}

// One scale for all axes, so that the sizes are at most, or at least, those that are given.
void keep_ratio(Call& call, const Tensor& x, const std::vector<int64_t>& axes,
                std::vector<double>& scales, std::vector<int64_t>& sizes) {
  const std::string_view policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") return;
  for (const int64_t axis : axes) call.require_fixed(x, axis);
  const double scale = policy == "not_larger" ? std::ranges::min(scales) : std::ranges::max(scales);
  for (size_t i = 0; i < axes.size(); ++i) {
    scales[i] = scale;
    sizes[i] = static_cast<int64_t>(std::floor(scale * static_cast<double>(x.size(axes[i])) + 0.5));
  }
}

// The sizes as numbers. An axis of a variable size keeps it.
std::vector<int64_t> sizes_for(Call& call, const Tensor& x, const std::vector<int64_t>& axes,
                               const std::vector<tensor::SizeValue>& wanted) {
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (wanted[i].varies() || call.varies(x, axes[i])) call.with_size(x, axes[i], wanted[i]);
    sizes.push_back(wanted[i].most);
  }
  return sizes;
}

int64_t size_of_scale(Call& call, int64_t size, double scale) {
  constexpr double kMost = 1e15;  // so that the product is exact
  const double scaled = static_cast<double>(size) * scale;
  if (!(scale > 0 && scaled <= kMost))
    call.wrong(fmt::format("the scale of an axis of {} elements is {}", size, scale));
  return static_cast<int64_t>(std::floor(scaled));
}

// Those of blocked channels are integers.
std::vector<double> scales_of(Call& call) {
  const auto integers = call.integers("scales");
  return integers.empty() ? call.numbers("scales")
                          : std::vector<double>(integers.begin(), integers.end());
}

Values resize_with(Call& call, size_t scales_input, size_t sizes_input) {
  Tensor x = call[0];
  std::vector<int64_t> axes(static_cast<size_t>(x.ndim()));
  std::iota(axes.begin(), axes.end(), 0);
  axes = call.axes(call.integers("axes", axes), x.ndim());
  if (sizes_input != 0 && call.has(sizes_input) && call.has(scales_input) &&
      call[scales_input].numel() > 0 && !call.sizes(sizes_input).empty())
    call.wrong("it has both scales and sizes");
  std::vector<double> scales;
  std::vector<int64_t> sizes;
  if (sizes_input != 0 && call.has(sizes_input) && call.sizes(sizes_input).size() == axes.size()) {
    sizes = sizes_for(call, x, axes, call.sizes(sizes_input));
    for (size_t i = 0; i < axes.size(); ++i)
      scales.push_back(static_cast<double>(sizes[i]) / static_cast<double>(x.size(axes[i])));
    keep_ratio(call, x, axes, scales, sizes);
  } else {
    scales = scales_input == 0 ? scales_of(call) : call.numbers_input(scales_input);
    if (scales.size() != axes.size()) call.wrong("scales must have a number for each axis");
    for (size_t i = 0; i < axes.size(); ++i)
      sizes.push_back(size_of_scale(call, x.size(axes[i]), scales[i]));
  }
  for (const int64_t size : sizes)
    if (size < 0) call.wrong(fmt::format("an axis would have {} elements", size));
  const Options options = resize_options(call);
  std::vector<double> region;
  if (options.coordinates == "tf_crop_and_resize") region = call.numbers_input(1);
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t from = x.size(axes[i]);
    if (from == 0 && sizes[i] > 0) call.wrong(fmt::format("axis {} has no elements", axes[i]));
    if (from == sizes[i] && region.empty() && scales[i] == 1) continue;
    call.require_fixed(x, axes[i]);
    x = resized(x, axes[i],
                {from, sizes[i], scales[i], region.empty() ? 0 : region.at(i),
                 region.empty() ? 1 : region.at(axes.size() + i)},
                options);
  }
  return {x};
}

Values resize(Call& call) {
  return call.opset() < 11 ? resize_with(call, 1, 0) : resize_with(call, 2, 3);
}
Values upsample(Call& call) {
  return resize_with(call, call.opset() < 9 ? 0 : 1, 0);
}

constexpr OperatorRow kResizeRows[] = {{"Resize", resize, kVariableSizes},
                                       {"Upsample", upsample, kVariableSizes},
                                       {"Upsample", upsample, kVariableSizes, kBlockedChannels}};

}  // namespace

std::span<const OperatorRow> resize_operators() {
  return kResizeRows;
}

}  // namespace plugrad::onnx
