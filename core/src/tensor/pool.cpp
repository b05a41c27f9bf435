// Pooling: a view of windows, then one reduction over them; and unpooling.
#include <cmath>
#include <limits>

#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "tensor/windows.h"

namespace plugrad {

using autodiff::Windows;
using tensor::each_axis;
using Sides = Padding::Sides;

namespace {

/// What pooling does to one tensor: its windows, the padding that was asked for, and with what
/// ceil_mode adds to it.
struct Pooling {
  std::string_view function;
  Windows windows;
  Sides own, all;

  int64_t axes() const { return static_cast<int64_t>(windows.axes()); }
  /// The axes of the kernel in the window view.
  Axes kernel_axes() const {
    std::vector<int64_t> list;
    for (int64_t i = -axes(); i < 0; ++i) list.push_back(i);
    return list;
  }
};

/// How far the last windows of ceil_mode reach over the padded end of an axis. Windows must begin
/// before that end, in the image or the padding before it.
int64_t overhang(const Windows& w, size_t axis, int64_t size, std::pair<int64_t, int64_t> pads) {
  const int64_t span = w.span(axis), stride = w.stride[axis];
  const int64_t padded = pads.first + size + pads.second;
  if (padded < span) return 0;
  int64_t count = (padded - span + stride - 1) / stride + 1;
  if ((count - 1) * stride >= pads.first + size) --count;
  return std::max<int64_t>((count - 1) * stride + span - padded, 0);
}

Pooling pooling(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  require(x.ndim() >= axes, "[{}] shape {} has fewer than {} axes", function, to_string(x.shape()),
          axes);
  const auto n = static_cast<size_t>(axes);
  Pooling p{.function = function, .windows = {}, .own = {}, .all = {}};
  p.windows.kernel = each_axis(function, "kernel", kernel, n, 1);
  p.windows.stride =
      each_axis(function, "stride", o.stride.list().empty() ? kernel : o.stride, n, 1);
  p.windows.dilation = each_axis(function, "dilation", o.dilation, n, 1);
  p.own = tensor::sides_of(function, o.padding, p.windows);
  p.all = p.own;
  for (size_t i = 0; i < n; ++i) {
    require(std::max(p.own[i].first, p.own[i].second) < p.windows.span(i),
            "[{}] padding of {} and {} is not smaller than a window of {}: some windows would hold "
            "nothing else",
            function, p.own[i].first, p.own[i].second, p.windows.span(i));
    if (o.ceil_mode)
      p.all[i].second += overhang(p.windows, i, x.size(static_cast<int64_t>(i) - axes), p.own[i]);
  }
  return p;
}

/// The windows of x, padded with `fill`.
Tensor view_of(const Pooling& p, const Tensor& x, double fill) {
  const Tensor padded = tensor::pad_image(x, p.all, fill);
  tensor::require_windows(p.function, p.windows, x, padded);
  return tensor::window_view(padded, p.windows);
}

double lowest(DType dtype) {
  if (is_float(dtype)) return -std::numeric_limits<double>::infinity();
  if (is_unsigned(dtype) || dtype == DType::Bool) return 0.0;
  return -std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
}

Tensor max_pool(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  const Pooling p = pooling(function, x, axes, kernel, o);
  return view_of(p, x, lowest(x.dtype())).max(p.kernel_axes());
}

ValuesAndPlaces max_pool_with_places(std::string_view function, const Tensor& x, int64_t axes,
                                     const PerAxis& kernel, const PoolOptions& o) {
  const Pooling p = pooling(function, x, axes, kernel, o);
  const Tensor view = view_of(p, x, lowest(x.dtype()));
  const Tensor largest = view.max(p.kernel_axes(), true).detach();
  // The first place is the largest of those counted from the end. NaN is a maximum. Padding is 0.
  const Shape shape = x.shape(), image(shape.end() - axes, shape.end());
  const int64_t count = element_count(image);
  const Tensor from_end = view_of(p, Tensor::arange(count, 0, -1).reshape(image), 0);
  const Tensor hit = (view == largest) | view.isnan();
  return {view.max(p.kernel_axes()), count - where(hit, from_end, 0).max(p.kernel_axes())};
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

Tensor avg_pool(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  const Pooling p = pooling(function, x, axes, kernel, o);
  const Tensor wide = x.cast(x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const Tensor sum = view_of(p, wide, 0).sum(p.kernel_axes());
  const DType result = tensor::real_dtype(x.dtype());
  const bool padded = p.own != Sides(p.own.size());
  if (p.all == p.own && (o.count_include_pad || !padded))
    return (sum / static_cast<double>(element_count(p.windows.kernel))).cast(result);
  Tensor elements = 1;
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto [before, after] = p.own[at];
    const int64_t size = x.size(i - axes), from_end = axes - 1 - i;
    const Tensor along =
        o.count_include_pad
            ? window_counts(p.windows, at, sum.size(i - axes), before, -before, size + after)
            : window_counts(p.windows, at, sum.size(i - axes), before, 0, size);
    Shape shape(static_cast<size_t>(from_end + 1), 1);
    shape[0] = -1;
    elements = elements * along.reshape(shape);
  }
  return (sum / elements).cast(result);
}

}  // namespace

Tensor max_pool1d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return max_pool("max_pool1d", x, 1, kernel, o);
}
Tensor max_pool2d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return max_pool("max_pool2d", x, 2, kernel, o);
}
Tensor max_pool3d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return max_pool("max_pool3d", x, 3, kernel, o);
}
Tensor Tensor::max_pool2d(Pair kernel, const PoolOptions& o) const {
  return plugrad::max_pool2d(*this, kernel, o);
}

ValuesAndPlaces max_pool1d_with_places(const Tensor& x, const PerAxis& kernel,
                                       const PoolOptions& o) {
  return max_pool_with_places("max_pool1d", x, 1, kernel, o);
}
ValuesAndPlaces max_pool2d_with_places(const Tensor& x, const PerAxis& kernel,
                                       const PoolOptions& o) {
  return max_pool_with_places("max_pool2d", x, 2, kernel, o);
}
ValuesAndPlaces max_pool3d_with_places(const Tensor& x, const PerAxis& kernel,
                                       const PoolOptions& o) {
  return max_pool_with_places("max_pool3d", x, 3, kernel, o);
}

Tensor avg_pool1d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return avg_pool("avg_pool1d", x, 1, kernel, o);
}
Tensor avg_pool2d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return avg_pool("avg_pool2d", x, 2, kernel, o);
}
Tensor avg_pool3d(const Tensor& x, const PerAxis& kernel, const PoolOptions& o) {
  return avg_pool("avg_pool3d", x, 3, kernel, o);
}
Tensor Tensor::avg_pool2d(Pair kernel, const PoolOptions& o) const {
  return plugrad::avg_pool2d(*this, kernel, o);
}

}  // namespace plugrad
