// Turns convolutions into reductions over a view of windows; a transposed one is a gradient.
#include "plugrad/conv.h"

#include <algorithm>

#include "autodiff/convolution.h"
#include "tensor/compute_dtype.h"
#include "tensor/conv/windows.h"
#include "tensor/lazy_text.h"
#include "tensor/named_function.h"

namespace plugrad {

using autodiff::Windows;
using tensor::Recorder;

namespace {

/// The accumulation dtype, and the dtype of the result.
struct Dtypes {
  DType compute, result;
};

Dtypes dtypes_of(std::string_view function, const Tensor& x, const Tensor& weight,
                 std::optional<DType> given) {
  require(x.defined() && weight.defined(), "[{}] a tensor is undefined; assign it a value first",
          function);
  const DType common = promote(x.dtype(), weight.dtype());
  require_type(common != DType::Bool, "[{}] takes numbers, not bool; cast it", function);
  if (given) {
    tensor::require_dtype(function, *given);
    return {*given, *given};
  }
  if (tensor::is_half(common))
    return {DType::F32, common};  // f32 holds the products exactly, as in matmul
  return {tensor::narrow_sum_dtype(common), tensor::narrow_sum_dtype(common)};
}

void require_channels(std::string_view function, const Tensor& x, const Tensor& weight,
                      int64_t groups, bool transposed) {
  require(x.ndim() >= 3 && weight.ndim() == x.ndim(),
          "[{}] image {} and weight {} must have the same number of axes, three at least", function,
          tensor::lazy_text(x), tensor::lazy_text(weight));
  tensor::require_fixed(function, x, 1);
  tensor::require_fixed(function, weight);
  const int64_t in = x.size(1);
  const std::string advice =
      tensor::channel_advice(x, transposed ? weight.size(0) : weight.size(1) * groups);
  if (transposed)
    require(
        groups > 0 && in == weight.size(0) && in % groups == 0,
        "[{}] image {} and weight {} do not fit {} groups: the weight must be ({}, out / groups, "
        "…), and {} a multiple of groups{}",
        function, tensor::lazy_text(x), tensor::lazy_text(weight), groups, in, in, advice);
  else
    require(
        groups > 0 && weight.size(0) % groups == 0 && in == weight.size(1) * groups,
        "[{}] image {} and weight {} do not fit {} groups: the weight must be (out, {} / groups, "
        "…) and out a multiple of groups{}",
        function, tensor::lazy_text(x), tensor::lazy_text(weight), groups, in, advice);
}

/// Windows over the last axes, with the weight's sizes as the kernel.
Windows windows_of(std::string_view function, const Tensor& weight, const PerAxis& stride,
                   const PerAxis& dilation) {
  const Shape shape = weight.shape();
  Windows w{{shape.begin() + 2, shape.end()}, {}, {}};
  for (int64_t size : w.kernel)
    require(size > 0, "[{}] the weight {} has no elements along an axis", function,
            tensor::lazy_text(shape));
  w.stride = tensor::each_axis(function, "stride", stride, w.axes(), 1);
  w.dilation = tensor::each_axis(function, "dilation", dilation, w.axes(), 1);
  return w;
}

Tensor with_bias(std::string_view function, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  const int64_t channels = y.size(1);
  require(bias.shape() == Shape{channels},
          "[{}] bias {} does not have one value for each of {} channels", function,
          tensor::lazy_text(bias), channels);
  Shape shape(static_cast<size_t>(y.ndim()), 1);
  shape[1] = channels;
  return y + bias.reshape(shape);
}

Tensor convolve(std::string_view function, const Tensor& given, const Tensor& weight,
                const Tensor& bias, const ConvOptions& o) {
  const tensor::NamedFunction named(function);
  const Dtypes dtypes = dtypes_of(function, given, weight, o.dtype);
  require_channels(tensor::called(function), given, weight, o.groups, false);
  const Tensor x = tensor::whole_image(given, 0, static_cast<size_t>(given.ndim()) - 2);
  const Windows w = windows_of(function, weight, o.stride, o.dilation);
  Padding::Sides sides = tensor::sides_of(function, o.padding, w), cuts(sides.size());
  const Tensor padded = tensor::pad_image(x.cast(dtypes.compute), sides);
  tensor::require_windows(function, w, x, padded);
  Shape shape = {x.size(0), weight.size(0)};
  autodiff::List padding;
  for (size_t i = 0; i < w.axes(); ++i) {
    shape.push_back(w.count(i, padded.size(static_cast<int64_t>(i) + 2)));
    cuts[i] = {std::min<int64_t>(sides[i].first, 0), std::min<int64_t>(sides[i].second, 0)};
    padding.insert(padding.end(),
                   {sides[i].first - cuts[i].first, sides[i].second - cuts[i].second});
  }
  if (std::ranges::all_of(padding, [](int64_t n) { return n == 0; })) padding.clear();
  const Tensor image = tensor::pad_image(x.cast(dtypes.compute), cuts);
  const Tensor kernel = weight.cast(dtypes.compute);
  Tensor y;
  {
    Recorder r(function);
    autodiff::Context context = tensor::context_of(r);
    const Id node = autodiff::build_convolution(
        context, {r.use(image), r.use(kernel), o.groups, w.stride, w.dilation, padding});
    y = r.done(r.reshape(node, shape));
  }
  y = with_bias(function, y.cast(dtypes.result), bias);
  for (size_t i = 0; i < w.axes(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const tensor::AxisSize size = tensor::axis_size(given, axis);
    y = tensor::limited(y, axis, tensor::window_count(function, w, i, size, sides[i]));
  }
  return y;
}

/// The size of an axis of the transposed convolution's result; `more` is the window, the output
/// padding and the cropped padding together.
tensor::AxisSize size_back(std::string_view function, const Tensor& x, int64_t axis, int64_t stride,
                           int64_t more) {
  tensor::AxisSize size = tensor::axis_size(x, axis);
  if (!size.varies) return size;
  const int64_t least = (size.least - 1) * stride + more;
  require(size.least > 0 && least > 0,
          "[{}] axis {} of {}, whose size may be {}, may leave no elements", function, axis,
          tensor::shown_shape(x), size.least);
  if (stride != 1) size = {size.count * stride, size.least * stride, true};
  return tensor::plus(size, more - stride);
}

Tensor convolve_back(std::string_view function, const Tensor& given, const Tensor& weight,
                     const Tensor& bias, const ConvTransposeOptions& o) {
  const tensor::NamedFunction named(function);
  const Dtypes dtypes = dtypes_of(function, given, weight, o.dtype);
  require_channels(tensor::called(function), given, weight, o.groups, true);
  const Tensor x = tensor::whole_image(given, 0, static_cast<size_t>(given.ndim()) - 2);
  const Windows w = windows_of(function, weight, o.stride, o.dilation);
  const std::vector<int64_t> more =
      tensor::each_axis(function, "output_padding", o.output_padding, w.axes(), 0);
  Padding::Sides sides = tensor::sides_of(function, o.padding, w);
  std::vector<int64_t> image;
  for (size_t i = 0; i < w.axes(); ++i) {
    const int64_t size = x.size(static_cast<int64_t>(i) + 2);
    require(more[i] < std::max(w.stride[i], w.dilation[i]),
            "[{}] output_padding {} must be below stride {} or dilation {}", function,
            tensor::lazy_text(more), tensor::lazy_text(w.stride), tensor::lazy_text(w.dilation));
    require(size > 0, "[{}] image {} has no elements along an axis", function,
            tensor::lazy_text(x));
    image.push_back((size - 1) * w.stride[i] + w.span(i) + more[i]);
    sides[i] = {-sides[i].first, -sides[i].second};
    require(image[i] + sides[i].first + sides[i].second > 0,
            "[{}] nothing is left of axis {}: {} elements less padding of {} and {}", function,
            i + 2, image[i], -sides[i].first, -sides[i].second);
  }
  const Tensor y = x.cast(dtypes.compute), kernel = weight.cast(dtypes.compute);
  Tensor whole;
  {
    Recorder r(function);
    autodiff::Context context = tensor::context_of(r);
    whole = r.done(autodiff::transposed_convolution(context, {.y = r.use(y),
                                                              .weight = r.use(kernel),
                                                              .groups = o.groups,
                                                              .stride = w.stride,
                                                              .dilation = w.dilation,
                                                              .image = image,
                                                              .store_weight = false}));
  }
  Tensor result = with_bias(function, tensor::pad_image(whole, sides).cast(dtypes.result), bias);
  for (size_t i = 0; i < w.axes(); ++i) {
    const auto axis = static_cast<int64_t>(i) + 2;
    const int64_t around = w.span(i) + more[i] + sides[i].first + sides[i].second;
    result = tensor::limited(result, axis, size_back(function, given, axis, w.stride[i], around));
  }
  return result;
}

void require_axes(std::string_view function, const Tensor& x, int64_t axes) {
  require(!x.defined() || x.ndim() == axes + 2, "[{}] image {} does not have {} axes", function,
          tensor::lazy_text(x), axes + 2);
}

}  // namespace

Tensor conv(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& o) {
  return convolve("conv", x, weight, bias, o);
}
Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& o) {
  require_axes("conv1d", x, 1);
  return convolve("conv1d", x, weight, bias, o);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& o) {
  require_axes("conv2d", x, 2);
  return convolve("conv2d", x, weight, bias, o);
}
Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& o) {
  require_axes("conv3d", x, 3);
  return convolve("conv3d", x, weight, bias, o);
}
Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o) const {
  return plugrad::conv2d(*this, weight, bias, o);
}

Tensor conv_transpose(const Tensor& x, const Tensor& weight, const Tensor& bias,
                      const ConvTransposeOptions& o) {
  return convolve_back("conv_transpose", x, weight, bias, o);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  require_axes("conv_transpose1d", x, 1);
  return convolve_back("conv_transpose1d", x, weight, bias, o);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  require_axes("conv_transpose2d", x, 2);
  return convolve_back("conv_transpose2d", x, weight, bias, o);
}
Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTransposeOptions& o) {
  require_axes("conv_transpose3d", x, 3);
  return convolve_back("conv_transpose3d", x, weight, bias, o);
}

}  // namespace plugrad
