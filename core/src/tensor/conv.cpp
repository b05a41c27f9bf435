// Convolution and pooling: a view of windows, then one reduction over them.
#include <cmath>
#include <limits>

#include "gradient/convolution.h"
#include "plugrad/functional.h"
#include "tensor/record.h"

namespace plugrad {

using autodiff::Windows;
using tensor::Recorder;

namespace {

using Pads = std::vector<std::pair<int64_t, int64_t>>;

autodiff::Context context_of(Recorder& r) {
  return {r.graph(), r.session().shapes(), r.session().devices()};
}

/// Around the last two axes.
Tensor pad_image(const Tensor& x, const Padding& p, double value = 0.0) {
  Pads pads(static_cast<size_t>(x.ndim()));
  pads[pads.size() - 2] = {p.top, p.bottom};
  pads[pads.size() - 1] = {p.left, p.right};
  return x.pad(pads, value);
}

void require_windows(std::string_view function, const Windows& w, const Tensor& x,
                     const Tensor& padded) {
  for (size_t i = 0; i < 2; ++i) {
    require(w.kernel[i] > 0 && w.stride[i] > 0 && w.dilation[i] > 0,
            "[{}] kernel, stride and dilation must be positive", function);
    require(
        w.count(i, padded.size(static_cast<int64_t>(i) - 2)) > 0,
        "[{}] windows of ({}, {}) with dilation ({}, {}) do not fit an image of {}, padded to {}",
        function, w.kernel[0], w.kernel[1], w.dilation[0], w.dilation[1], to_string(x.shape()),
        to_string(padded.shape()));
  }
}

Tensor window_view(const Tensor& x, const Windows& w) {
  Recorder r("window_view");
  autodiff::Context context = context_of(r);
  return r.done(autodiff::window_view(context, r.use(x), w));
}

bool is_half(DType dtype) {
  return is_float(dtype) && size_of(dtype) < 4;
}

void require_channels(const Tensor& x, const Tensor& weight, const ConvOptions& o) {
  require(x.ndim() == 4 && weight.ndim() == 4,
          "[conv2d] image {} and weight {} must have four axes", to_string(x.shape()),
          to_string(weight.shape()));
  const int64_t in = x.size(1), out = weight.size(0);
  require(o.groups > 0 && out % o.groups == 0 && in == weight.size(1) * o.groups,
          "[conv2d] image {} and weight {} do not fit {} groups: the weight must be (out, {} / "
          "groups, …) and out a "
          "multiple of groups",
          to_string(x.shape()), to_string(weight.shape()), o.groups, in);
}

}  // namespace

Tensor Tensor::conv2d(const Tensor& weight, const Tensor& bias, const ConvOptions& o) const {
  require_channels(*this, weight, o);
  const DType common = promote(dtype(), weight.dtype());
  const DType wide = is_half(common) ? DType::F32 : sum_dtype(common);  // as in matmul
  const Tensor image = pad_image(cast(wide), o.padding), kernel = weight.cast(wide);
  const Windows windows{{weight.size(2), weight.size(3)},
                        {o.stride.height, o.stride.width},
                        {o.dilation.height, o.dilation.width}};
  require_windows("conv2d", windows, *this, image);
  Tensor y;
  {
    Recorder r("conv2d");
    autodiff::Context context = context_of(r);
    const Id node = autodiff::build_convolution(
        context, {r.use(image), r.use(kernel), o.groups, windows.stride, windows.dilation});
    y = r.done(r.reshape(node, {size(0), weight.size(0), windows.count(0, image.size(2)),
                                windows.count(1, image.size(3))}));
  }
  if (is_half(common)) y = y.cast(common);
  if (!bias.defined()) return y;
  require(bias.shape() == Shape{weight.size(0)},
          "[conv2d] bias {} does not have one value for each of {} channels",
          to_string(bias.shape()), weight.size(0));
  return y + bias.reshape({1, -1, 1, 1});
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const ConvOptions& options) {
  return x.conv2d(weight, bias, options);
}

namespace {

Windows pool_windows(const Pair& kernel, const PoolOptions& o) {
  const Pair stride = o.stride.value_or(kernel);
  return {{kernel.height, kernel.width},
          {stride.height, stride.width},
          {o.dilation.height, o.dilation.width}};
}

/// How far the last windows of ceil_mode reach over the padded end of an axis. Windows must begin
/// before it.
int64_t overhang(const Windows& w, size_t axis, int64_t size, int64_t before, int64_t after) {
  const int64_t span = w.dilation[axis] * (w.kernel[axis] - 1) + 1, stride = w.stride[axis];
  int64_t count = (before + size + after - span + stride - 1) / stride + 1;
  if ((count - 1) * stride >= before + size) --count;
  return std::max<int64_t>((count - 1) * stride + span - (before + size + after), 0);
}

Padding ceil_padding(const Tensor& x, const Windows& w, const PoolOptions& o) {
  Padding p = o.padding;
  if (!o.ceil_mode) return p;
  p.bottom += overhang(w, 0, x.size(-2), p.top, p.bottom);
  p.right += overhang(w, 1, x.size(-1), p.left, p.right);
  return p;
}

void require_image(std::string_view function, const Tensor& x) {
  require(x.ndim() >= 2, "[{}] shape {} has fewer than two axes", function, to_string(x.shape()));
}

/// How many elements of each window of an axis lie in [low, high), where window i begins at i *
/// stride - before.
Tensor window_counts(const Windows& w, size_t axis, int64_t count, int64_t before, int64_t low,
                     int64_t high) {
  const int64_t kernel = w.kernel[axis], dilation = w.dilation[axis];
  const Tensor start = Tensor::arange(count) * w.stride[axis] - before;
  const auto elements_below = [&](int64_t end) {
    return (end - start + (dilation - 1)).floor_div(dilation).maximum(0).minimum(kernel);
  };
  return elements_below(high) - elements_below(low);
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  return is_unsigned(dtype) ? 0.0 : -std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
}

}  // namespace

Tensor Tensor::max_pool2d(Pair kernel, const PoolOptions& o) const {
  require_image("max_pool2d", *this);
  const Windows w = pool_windows(kernel, o);
  const Tensor padded = pad_image(*this, ceil_padding(*this, w, o), lowest(dtype()));
  require_windows("max_pool2d", w, *this, padded);
  return window_view(padded, w).max({-2, -1});
}

Tensor Tensor::avg_pool2d(Pair kernel, const PoolOptions& o) const {
  require_image("avg_pool2d", *this);
  const Windows w = pool_windows(kernel, o);
  const Padding all = ceil_padding(*this, w, o), own = o.padding;
  const Tensor x = cast(dtype() == DType::F64 ? DType::F64 : DType::F32);
  const Tensor padded = pad_image(x, all);
  require_windows("avg_pool2d", w, *this, padded);
  const Tensor sum = window_view(padded, w).sum({-2, -1});
  const bool padded_at_all = own.top != 0 || own.bottom != 0 || own.left != 0 || own.right != 0;
  const bool reaches_over = all.bottom != own.bottom || all.right != own.right;
  if (!reaches_over && (o.count_include_pad || !padded_at_all))
    return (sum / static_cast<double>(kernel.height * kernel.width))
        .cast(tensor::real_dtype(dtype()));
  const Padding counted = o.count_include_pad ? own : Padding(0);
  const Tensor rows =
      window_counts(w, 0, sum.size(-2), own.top, -counted.top, size(-2) + counted.bottom);
  const Tensor columns =
      window_counts(w, 1, sum.size(-1), own.left, -counted.left, size(-1) + counted.right);
  return (sum / (rows.reshape({-1, 1}) * columns)).cast(tensor::real_dtype(dtype()));
}

}  // namespace plugrad
