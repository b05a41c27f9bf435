// GridSample, AffineGrid and the deformable convolution.
#include "onnx/ops/vision/sampling.h"

#include <algorithm>

#include "base/check.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"
#include "plugrad/functional.h"

namespace plugrad::onnx {
namespace {

// x mirrored at low and high until it is between them.
Tensor mirrored(const Tensor& x, double low, double high) {
  const double range = high - low;
  if (range <= 0) return x.full_like(low);
  const Tensor turn = (x - low).abs() % (2 * range);
  return low + (turn > range).where(2 * range - turn, turn);
}

// Of one axis: the elements that each point reads, and their weights. Shape: (n, p, taps).
struct Taps {
  Tensor index, weight;
};

// Source: Keys 1981, with the coefficient -0.75.
Tensor cubic_tap_weights(const Tensor& distance) {
  constexpr double a = -0.75;
  const Tensor x = distance.abs();
  const Tensor near = ((a + 2) * x - (a + 3)) * x * x + 1;
  const Tensor far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return (x <= 1).where(near, (x < 2).where(far, x.zeros_like()));
}

Taps taps_of(const Tensor& at, int64_t size, const Sampling& how) {
  const double low = how.aligns_corners ? 0 : -0.5;
  const double high = static_cast<double>(size) - (how.aligns_corners ? 1 : 0.5);
  const auto last = static_cast<double>(size - 1);
  Tensor x = how.mode == SamplingMode::Nearest ? at.round() : at;
  const Tensor is_outside = (x < low) | (x > high);
  // A cubic reads a border's elements at its taps, not at a point moved to the border.
  if (how.padding == SamplingPadding::Border && how.mode != SamplingMode::Cubic)
    x = is_outside.where(x.clamp(0, last), x);
  if (how.padding == SamplingPadding::Reflection) x = is_outside.where(mirrored(x, low, high), x);
  const int64_t count = how.mode == SamplingMode::Nearest  ? 1
                        : how.mode == SamplingMode::Linear ? 2
                                                           : 4;
  const Tensor point = x.unsqueeze(-1);
  const Tensor first = how.mode == SamplingMode::Cubic ? point.floor() - 1 : point.floor();
  const Tensor tap = first + Tensor::arange(count, x.dtype());
  Tensor weight = how.mode == SamplingMode::Cubic    ? cubic_tap_weights(point - tap)
                  : how.mode == SamplingMode::Linear ? (1 - (point - tap).abs()).maximum(0)
                                                     : tap.ones_like();
  Tensor index = tap;
  if (how.padding == SamplingPadding::Reflection) index = mirrored(tap, low, high);
  if (how.padding == SamplingPadding::Zeros)
    weight = ((tap >= 0) & (tap <= last)).where(weight, weight.zeros_like());
  return {index.clamp(0, last).cast(DType::I64), weight};
}

}  // namespace

Tensor sampled(const Tensor& x, const std::vector<Tensor>& at, const Sampling& how) {
  const int64_t n = x.size(0), channels = x.size(1), points = at[0].size(1);
  const auto axes = static_cast<int64_t>(at.size());
  const int64_t elements = n * channels == 0 ? 0 : x.numel() / (n * channels);
  // Index and weight of all combinations of taps: (n, p, taps of axis 0, taps of axis 1, …).
  Shape of_images(static_cast<size_t>(axes + 2), 1);
  of_images[0] = n;
  Tensor index = (Tensor::arange(n, DType::I64) * elements).reshape(of_images), weight;
  int64_t step = elements;
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t size = x.size(2 + i);
    step = size == 0 ? 0 : step / size;
    const Taps taps = taps_of(at[static_cast<size_t>(i)], size, how);
    Shape along(static_cast<size_t>(axes + 2), 1);
    along[0] = n;
    along[1] = points;
    along[static_cast<size_t>(2 + i)] = taps.index.size(2);
    index = index + taps.index.reshape(along) * step;
    const Tensor each = taps.weight.reshape(along);
    weight = weight.defined() ? weight * each : each;
  }
  const Tensor rows = x.transpose(0, 1).reshape({channels, n * elements});
  Tensor read = rows.index_select(1, index);
  if (how.mode == SamplingMode::Nearest)
    read = (weight != 0).where(read, read.zeros_like());
  else
    read = read.cast(weight.dtype()) * weight;
  Integers of_taps;
  for (int64_t i = 0; i < axes; ++i) of_taps.push_back(3 + i);
  const Tensor result =
      how.mode == SamplingMode::Nearest ? read.reshape({channels, n, points}) : read.sum(of_taps);
  return result.transpose(0, 1).cast(x.dtype());
}

namespace {

Sampling sampling_of(Call& call) {
  Sampling how;
  const std::string_view mode = call.text("mode", call.opset() < 20 ? "bilinear" : "linear");
  if (mode == "nearest")
    how.mode = SamplingMode::Nearest;
  else if (mode == "cubic" || mode == "bicubic")
    how.mode = SamplingMode::Cubic;
  const std::string_view padding = call.text("padding_mode", "zeros");
  if (padding == "border")
    how.padding = SamplingPadding::Border;
  else if (padding == "reflection")
    how.padding = SamplingPadding::Reflection;
  how.aligns_corners = call.integer("align_corners", 0) != 0;
  return how;
}

// The grid's last axis has the coordinates of the innermost axis first, in [-1, 1].
Values grid_sample(Call& call) {
  const Tensor x = call[0], grid = call[1];
  const int64_t axes = x.ndim() - 2;
  if (grid.ndim() != x.ndim() || grid.size(-1) != axes)
    call.wrong(fmt::format("the grid of shape {} is not for {}", to_string(grid.shape()),
                           to_string(x.shape())));
  const Sampling how = sampling_of(call);
  const Tensor wide = grid.dtype() == DType::F64 ? grid : grid.cast(DType::F32);
  const Tensor flat = wide.reshape({grid.size(0), -1, axes});
  std::vector<Tensor> at;
  for (int64_t i = 0; i < axes; ++i) {
    const int64_t last = axes - 1 - i;
    const Tensor each = flat.slice(2, {last, last + 1}).squeeze(2) + 1;
    const auto size = static_cast<double>(x.size(2 + i));
    at.push_back(how.aligns_corners ? each / 2 * (size - 1) : (each * size - 1) / 2);
  }
  Shape shape = grid.shape();
  shape.pop_back();
  shape.insert(shape.begin() + 1, x.size(1));
  return {sampled(x, at, how).reshape(shape)};
}

// The positions of the elements of an image in [-1, 1], transformed by theta.
Values affine_grid(Call& call) {
  const Tensor theta = call[0];
  const Integers size = call.integers(1);
  const auto axes = static_cast<int64_t>(size.size()) - 2;
  if (axes != theta.size(1)) call.wrong("size does not have the axes of theta");
  const bool aligns = call.integer("align_corners", 0) != 0;
  const Shape image(size.begin() + 2, size.end());
  std::vector<Tensor> position;
  for (int64_t i = axes; i-- > 0;) {
    const int64_t count = image[static_cast<size_t>(i)];
    const auto steps = static_cast<double>(aligns ? std::max<int64_t>(count - 1, 1) : count);
    const double first = aligns ? -1 : -1 + 1 / steps;
    Shape along(static_cast<size_t>(axes), 1);
    along[static_cast<size_t>(i)] = count;
    const Tensor each = Tensor::arange(count, DType::F32) * (2 / steps) + first;
    position.push_back(each.reshape(along).expand(image));
  }
  position.push_back(Tensor::ones(image, DType::F32));
  const Tensor points = stack(position, -1).reshape({1, -1, axes + 1}).cast(theta.dtype());
  Shape shape = image;
  shape.insert(shape.begin(), theta.size(0));
  shape.push_back(axes);
  return {points.matmul(theta.transpose()).reshape(shape)};
}

// Where each element of the kernel reads, of one axis: (n * groups, elements of the kernel *
// elements of the result). `offset`: (n * groups, elements of the kernel, axes, result's axes…).
Tensor read_positions(const Tensor& offset, const Window& w, size_t axis) {
  const auto number = static_cast<int64_t>(axis);
  const Tensor own = offset.slice(2, {number, number + 1}).squeeze(2);
  Shape of_kernel(w.kernel.size(), 1), of_result(static_cast<size_t>(own.ndim()), 1);
  of_kernel[axis] = w.kernel[axis];
  of_result[axis + 2] = own.size(number + 2);
  Shape flat(static_cast<size_t>(own.ndim()), 1);
  flat[1] = own.size(1);
  const Tensor in_kernel =
      (Tensor::arange(w.kernel[axis], DType::F32) * static_cast<double>(w.dilations[axis]))
          .reshape(of_kernel)
          .expand(w.kernel)
          .reshape(flat);
  const Tensor in_result =
      (Tensor::arange(own.size(number + 2), DType::F32) * static_cast<double>(w.strides[axis]) -
       static_cast<double>(w.pads[axis].first))
          .reshape(of_result);
  return (own.cast(DType::F32) + in_kernel + in_result).reshape({own.size(0), -1});
}

// A convolution whose kernel reads between the elements. Source: Dai et al. 2017; Zhu et al. 2018.
Values deform_conv(Call& call) {
  const Tensor x = call[0], weight = call[1];
  const Window w = window_of(call, x, kernel_of_weight(call, weight));
  const int64_t n = x.size(0), channels = x.size(1), outputs = weight.size(0);
  const int64_t groups = call.integer("group", 1), shared = call.integer("offset_group", 1);
  int64_t elements = 1;
  for (const int64_t size : w.kernel) elements *= size;
  const Shape all = call[2].shape();
  if (call[2].ndim() != x.ndim())
    call.wrong(fmt::format("the offsets have the shape {}, the input {}", to_string(all),
                           to_string(x.shape())));
  const Shape result(all.begin() + 2, all.end());
  Shape split{n * shared, elements, static_cast<int64_t>(w.kernel.size())};
  split.insert(split.end(), result.begin(), result.end());
  const Tensor offset = call[2].reshape(split);
  std::vector<Tensor> at;
  for (size_t i = 0; i < w.kernel.size(); ++i) at.push_back(read_positions(offset, w, i));
  Shape grouped = x.shape();
  grouped[0] = n * shared;
  grouped[1] = channels / shared;
  Tensor read = sampled(x.reshape(grouped), at, {.aligns_corners = true});
  if (call.has(4)) read = read * call[4].reshape({n * shared, 1, -1});
  // The product of the weight's rows with what the kernel reads.
  const Tensor columns = read.reshape({n, groups, channels / groups * elements, -1});
  const Tensor rows = weight.reshape({groups, outputs / groups, -1});
  Shape shape{n, outputs};
  shape.insert(shape.end(), result.begin(), result.end());
  const Tensor product = rows.matmul(columns).reshape(shape);
  if (!call.has(3)) return {product};
  Shape of_channels(shape.size(), 1);
  of_channels[1] = outputs;
  return {product + call[3].reshape(of_channels)};
}

constexpr OperatorRow kSamplingRows[] = {
    {"AffineGrid", affine_grid},
    {"DeformConv", deform_conv},
    {"GridSample", grid_sample},
};

}  // namespace

std::span<const OperatorRow> sampling_operators() {
  return kSamplingRows;
}

}  // namespace plugrad::onnx
