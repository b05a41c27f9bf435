// Turns pooling into a reduction over a view of windows.
#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "tensor/compute_dtype.h"
#include "tensor/conv/windows.h"
#include "tensor/index/index.h"
#include "tensor/lazy_text.h"

namespace plugrad {

using autodiff::Windows;
using tensor::each_axis;
using Sides = Padding::Sides;
using tensor::AxisSize;

namespace {

/// Pooling of one tensor: the windows, the requested padding (`own`), and the padding with that of
/// ceil_mode (`all`).
struct Pooling {
  std::string_view function;
  Windows windows;
  Sides own, all;
  bool ceil_mode = false;

  int64_t axes() const { return static_cast<int64_t>(windows.axes()); }
  /// The axes of the kernel in the window view.
  Axes kernel_axes() const {
    std::vector<int64_t> list;
    for (int64_t i = -axes(); i < 0; ++i) list.push_back(i);
    return list;
  }
};

/// Padding that the last window of ceil_mode needs beyond the padded end of an axis. A window must
/// start inside the image or the padding in front of it.
int64_t overhang(const Windows& w, size_t axis, int64_t size, std::pair<int64_t, int64_t> pads) {
  const int64_t span = w.span(axis), stride = w.stride[axis];
  const int64_t padded = pads.first + size + pads.second;
  if (padded + stride - 1 < span) return 0;
  int64_t count = (padded - span + stride - 1) / stride + 1;
  if ((count - 1) * stride >= pads.first + size) --count;
  return std::max<int64_t>((count - 1) * stride + span - padded, 0);
}

Pooling pooling(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  require(x.ndim() >= axes, "[{}] shape {} has fewer than {} axes", function, tensor::lazy_text(x),
          axes);
  const auto n = static_cast<size_t>(axes);
  Pooling p{.function = function, .windows = {}, .own = {}, .all = {}, .ceil_mode = o.ceil_mode};
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

Tensor view_of(const Pooling& p, const Tensor& x, const Tensor& fill) {
  const Tensor padded =
      tensor::pad_image(tensor::whole_image(x, fill, p.windows.axes()), p.all, fill);
  tensor::require_windows(p.function, p.windows, x, padded);
  return tensor::window_view(padded, p.windows);
}

/// The number of windows of axis i of x. With ceil_mode a window must start before the end of the
/// image.
AxisSize pooled_size(const Pooling& p, const Tensor& x, size_t i) {
  const AxisSize size = tensor::axis_size(x, static_cast<int64_t>(i) - p.axes());
  const int64_t stride = p.windows.stride[i];
  if (!size.varies || !p.ceil_mode || stride == 1)
    return tensor::window_count(p.function, p.windows, i, size, p.own[i]);
  const auto [before, after] = p.own[i];
  AxisSize all = tensor::window_count(p.function, p.windows, i, size, {before, after + stride - 1});
  const Tensor begun = (size.count + (before - 1)).floor_div(stride) + 1;
  all.count = all.count.minimum(begun);
  all.least = std::min(all.least, (size.least + before - 1) / stride + 1);
  return all;
}

/// Gives `y`, a result with one element for each window of x, the variable sizes of x.
Tensor limited_windows(const Pooling& p, const Tensor& y, const Tensor& x) {
  Tensor result = y;
  for (size_t i = 0; i < p.windows.axes(); ++i)
    result = tensor::limited(result, x.ndim() - p.axes() + static_cast<int64_t>(i),
                             pooled_size(p, x, i));
  return result;
}

Tensor max_pool(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  const Pooling p = pooling(function, x, axes, kernel, o);
  return limited_windows(p, view_of(p, x, tensor::lowest(x.dtype())).max(p.kernel_axes()), x);
}

/// Numbers the elements of an image backwards, down to 1, at the sizes of x; 0 beyond them.
Tensor numbers_from_end(const Tensor& x, int64_t axes, Tensor& count) {
  const Shape shape = x.shape(), image(shape.end() - axes, shape.end());
  const int64_t all = element_count(image);
  count = Tensor(all);
  Tensor number = Tensor::arange(all, 0, -1).reshape(image);
  bool varies = false;
  for (int64_t i = 0; i < axes; ++i) varies |= tensor::has_variable_size(x, x.ndim() - axes + i);
  if (!varies) return number;
  count = Tensor(1);
  Tensor index = 0;
  for (int64_t i = 0; i < axes; ++i) {
    const AxisSize size = tensor::axis_size(x, x.ndim() - axes + i);
    index = index * size.count + tensor::counter(image[static_cast<size_t>(i)], axes, i);
    count = count * size.count;
  }
  number = count - index;
  for (int64_t i = 0; i < axes; ++i)
    number = tensor::limited(number, i, tensor::axis_size(x, x.ndim() - axes + i));
  return number;
}

ValuesAndPlaces max_pool_with_places(std::string_view function, const Tensor& given, int64_t axes,
                                     const PerAxis& kernel, const PoolOptions& o) {
  const Tensor x = tensor::stored_once(given);
  const Pooling p = pooling(function, x, axes, kernel, o);
  const Tensor view = view_of(p, x, tensor::lowest(x.dtype()));
  const Tensor largest = view.max(p.kernel_axes(), true).detach();
  // The first index has the largest number counted from the end. NaN is a maximum. Padding has
  // number 0.
  Tensor count;
  const Tensor from_end = view_of(p, numbers_from_end(x, axes, count), 0);
  const Tensor hit = (view == largest) | view.isnan();
  const Tensor index = count - where(hit, from_end, 0).max(p.kernel_axes());
  return {limited_windows(p, view.max(p.kernel_axes()), x), limited_windows(p, index, x)};
}

/// The number of elements of each window that lie in [low, high); window i starts at i * stride -
/// before.
Tensor window_counts(const Windows& w, size_t axis, int64_t count, int64_t before, int64_t low,
                     const Tensor& high) {
  const int64_t kernel = w.kernel[axis], dilation = w.dilation[axis];
  const Tensor start = Tensor::arange(count) * w.stride[axis] - before;
  const auto elements_below = [&](const Tensor& end) {
    return (end - start + (dilation - 1)).floor_div(dilation).maximum(0).minimum(kernel);
  };
  return elements_below(high) - elements_below(low);
}

Tensor avg_pool(std::string_view function, const Tensor& x, int64_t axes, const PerAxis& kernel,
                const PoolOptions& o) {
  const Pooling p = pooling(function, x, axes, kernel, o);
  const Tensor promoted = x.cast(x.dtype() == DType::F64 ? DType::F64 : DType::F32);
  const Tensor sum = view_of(p, promoted, 0).sum(p.kernel_axes());
  const DType result = tensor::real_dtype(x.dtype());
  const bool padded = p.own != Sides(p.own.size());
  if (p.all == p.own && (o.count_include_pad || !padded))
    return limited_windows(
        p, (sum / static_cast<double>(element_count(p.windows.kernel))).cast(result), x);
  Tensor elements = 1;
  for (int64_t i = 0; i < axes; ++i) {
    const auto at = static_cast<size_t>(i);
    const auto [before, after] = p.own[at];
    const AxisSize size = tensor::axis_size(x, i - axes);
    const int64_t from_end = axes - 1 - i;
    const Tensor along =
        o.count_include_pad
            ? window_counts(p.windows, at, sum.size(i - axes), before, -before,
                            tensor::plus(size, after).count)
            : window_counts(p.windows, at, sum.size(i - axes), before, 0, size.count);
    Shape shape(static_cast<size_t>(from_end + 1), 1);
    shape[0] = -1;
    elements = elements * along.reshape(shape);
  }
  return limited_windows(p, (sum / elements).cast(result), x);
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
  return max_pool_with_places("max_pool1d_with_places", x, 1, kernel, o);
}
ValuesAndPlaces max_pool2d_with_places(const Tensor& x, const PerAxis& kernel,
                                       const PoolOptions& o) {
  return max_pool_with_places("max_pool2d_with_places", x, 2, kernel, o);
}
ValuesAndPlaces max_pool3d_with_places(const Tensor& x, const PerAxis& kernel,
                                       const PoolOptions& o) {
  return max_pool_with_places("max_pool3d_with_places", x, 3, kernel, o);
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
