#include "onnx/ops/windows.h"

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "onnx/ops/tables.h"

namespace plugrad::onnx {
namespace {

Tensor with_channels_moved(const Tensor& x, int64_t from, int64_t to) {
  if (x.ndim() < 3) return x;  // an error of what looks for its kernel
  Integers order(static_cast<size_t>(x.ndim()));
  std::iota(order.begin(), order.end(), 0);
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  return x.permute(order);
}

}  // namespace

// SAME pads so that the result has ceil(size / stride) elements.
Window window_of(Call& call, const Tensor& x, const Integers& kernel) {
  const size_t axes = kernel.size();
  Window w{kernel,
           call.integers("strides", Integers(axes, 1)),
           call.integers("dilations", Integers(axes, 1)),
           {}};
  const std::string_view automatic = call.text("auto_pad", "NOTSET");
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  require_axes(call, x, axes, {w.strides, w.dilations});
  if (pads.size() != 2 * axes)
    call.wrong("pads do not have two numbers for each axis of the kernel");
  for (size_t i = 0; i < axes; ++i) {
    // Convolutions along an axis take the time of its largest size.
    if (call.recording().sizes_are_inferred) call.require_fixed(x, static_cast<int64_t>(2 + i));
    if (automatic == "NOTSET") {
      w.pads.emplace_back(pads[i], pads[axes + i]);
    } else if (automatic == "VALID") {
      w.pads.emplace_back(0, 0);
    } else {
      call.require_fixed(x, static_cast<int64_t>(2 + i));
      const int64_t size = x.size(static_cast<int64_t>(2 + i)), stride = w.strides[i];
      const int64_t wanted = (size + stride - 1) / stride;
      const int64_t total =
          std::max<int64_t>(0, (wanted - 1) * stride + (kernel[i] - 1) * w.dilations[i] + 1 - size);
      const int64_t less = total / 2, more = total - less;
      if (automatic == "SAME_UPPER")
        w.pads.emplace_back(less, more);
      else
        w.pads.emplace_back(more, less);
    }
  }
  return w;
}

Integers kernel_of_weight(Call& call, const Tensor& weight) {
  Integers kernel = weight.shape();
  if (kernel.size() < 3)
    call.wrong(fmt::format("W has the shape {}, without a kernel", to_string(kernel)));
  kernel.erase(kernel.begin(), kernel.begin() + 2);
  if (const Integers given = call.integers("kernel_shape", kernel); given != kernel)
    call.wrong(fmt::format("kernel_shape is {}, but W has the shape {}", to_string(given),
                           to_string(weight.shape())));
  return kernel;
}

void require_axes(Call& call, const Tensor& x, size_t axes, std::initializer_list<Integers> lists) {
  if (x.ndim() != static_cast<int64_t>(axes) + 2)
    call.wrong(
        fmt::format("the input has the shape {}, the kernel {} axes", to_string(x.shape()), axes));
  for (const Integers& list : lists)
    if (list.size() != axes)
      call.wrong(
          fmt::format("{} has {} numbers, the kernel {} axes", to_string(list), list.size(), axes));
}

Axes spatial_axes(const Tensor& x) {
  Integers axes;
  for (int64_t i = 2; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

Tensor channels_first(const Tensor& x) {
  return with_channels_moved(x, x.ndim() - 1, 1);
}
Tensor channels_last(const Tensor& x) {
  return with_channels_moved(x, 1, x.ndim() - 1);
}

}  // namespace plugrad::onnx
