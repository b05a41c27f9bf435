#include "tensor/conv/windows.h"

#include <algorithm>

#include "tensor/lazy_text.h"

namespace plugrad::tensor {

using autodiff::Windows;

autodiff::Context context_of(Recorder& r) {
  return {r.graph(), r.session().shapes(), r.session().devices()};
}

std::string channel_advice(const Tensor& x, int64_t channels) {
  const int64_t rank = x.ndim();
  if (rank < 3 || x.size(1) == channels || x.size(-1) != channels) return "";
  std::vector<int64_t> order = {0, rank - 1};
  for (int64_t axis = 1; axis < rank - 1; ++axis) order.push_back(axis);
  return fmt::format("; channels are axis 1, and x.permute({}) moves the last axis there",
                     fmt::join(order, ", "));
}

std::vector<int64_t> each_axis(std::string_view function, std::string_view setting,
                               const PerAxis& given, size_t axes, int64_t least) {
  std::vector<int64_t> list = given.list();
  if (list.size() == 1) list.resize(axes, list[0]);
  require(list.size() == axes, "[{}] {} {} has {} entries; {} axes take one, or one each", function,
          setting, lazy_text(list), list.size(), axes);
  for (int64_t n : list)
    require(n >= least, "[{}] {} {} must be {} or more", function, setting, lazy_text(list), least);
  return list;
}

namespace {

Padding::Sides same_sides(std::string_view function, const Windows& w) {
  Padding::Sides sides;
  for (size_t i = 0; i < w.axes(); ++i) {
    require(w.stride[i] == 1,
            "[{}] padding \"same\" keeps sizes with stride 1 alone, and stride is {}", function,
            lazy_text(w.stride));
    const int64_t all = w.span(i) - 1;
    sides.emplace_back(all / 2, all - all / 2);
  }
  return sides;
}

}  // namespace

Padding::Sides sides_of(std::string_view function, const Padding& padding, const Windows& w) {
  const size_t n = w.axes();
  if (padding.name() != nullptr) {
    const std::string_view name = padding.name();
    if (name == "same") return same_sides(function, w);
    require(name == "valid", "[{}] there is no padding \"{}\"; \"same\" and \"valid\" are known",
            function, name);
    return Padding::Sides(n);
  }
  if (padding.list().empty()) {
    require(padding.sides().size() == n, "[{}] padding has {} pairs for {} axes", function,
            padding.sides().size(), n);
    return padding.sides();
  }
  std::vector<int64_t> list = padding.list();
  Padding::Sides sides;
  if (list.size() == 2 * n) {
    for (size_t i = n; i-- > 0;) sides.emplace_back(list[2 * i], list[2 * i + 1]);
    return sides;
  }
  if (list.size() == 1) list.resize(n, list[0]);
  require(list.size() == n,
          "[{}] padding {} has {} entries; {} axes take one, one each, or begin and end of each",
          function, lazy_text(list), list.size(), n);
  for (int64_t both : list) sides.emplace_back(both, both);
  return sides;
}

Tensor pad_image(const Tensor& x, const Padding::Sides& sides, const Tensor& value) {
  Padding::Sides pads(static_cast<size_t>(x.ndim()) - sides.size());
  pads.insert(pads.end(), sides.begin(), sides.end());
  return x.pad(pads, value);
}

void require_windows(std::string_view function, const Windows& w, const Tensor& x,
                     const Tensor& padded) {
  const size_t n = w.axes();
  for (size_t i = 0; i < n; ++i)
    require(w.count(i, padded.size(static_cast<int64_t>(i) - static_cast<int64_t>(n))) > 0,
            "[{}] windows of {} with dilation {} do not fit an image of {}, padded to {}", function,
            lazy_text(w.kernel), lazy_text(w.dilation), lazy_text(x), lazy_text(padded));
}

AxisSize window_count(std::string_view function, const Windows& w, size_t axis,
                      const AxisSize& size, std::pair<int64_t, int64_t> pads) {
  const int64_t more = pads.first + pads.second - w.span(axis), stride = w.stride[axis];
  require(!size.varies || size.least + more >= 0,
          "[{}] windows of {} with dilation {} do not fit an axis whose variable size may be {}, "
          "padded "
          "with {} and {}",
          function, lazy_text(w.kernel), lazy_text(w.dilation), size.least, pads.first,
          pads.second);
  const AxisSize last = plus(size, more);
  if (stride == 1 || !last.varies) {
    const int64_t least = last.least / stride;
    return plus(last.varies ? last : AxisSize{Tensor(least), least}, 1);
  }
  return plus(AxisSize{last.count.floor_div(stride), last.least / stride, true}, 1);
}

Tensor whole_image(const Tensor& x, const Tensor& fill, size_t axes) {
  Tensor y = x;
  for (int64_t axis = x.ndim() - static_cast<int64_t>(axes); axis < x.ndim(); ++axis)
    y = whole(y, fill, axis);
  return y;
}

Tensor window_view(const Tensor& x, const Windows& w) {
  for (int64_t axis = 2; axis < x.ndim(); ++axis) require_fixed("windows", x, axis);
  Recorder r("window_view");
  autodiff::Context context = context_of(r);
  return r.done(autodiff::window_view(context, r.use(x), w));
}

}  // namespace plugrad::tensor
