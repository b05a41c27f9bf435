#include "onnx/ops/windows.h"

#include <algorithm>

namespace plugrad::onnx {

using Integers = std::vector<int64_t>;

// SAME pads so that the result has ceil(size / stride) elements.
Window window_of(Call& call, const Tensor& x, const Integers& kernel) {
  const size_t axes = kernel.size();
  Window w{kernel,
           call.integers("strides", Integers(axes, 1)),
           call.integers("dilations", Integers(axes, 1)),
           {}};
  const std::string_view automatic = call.text("auto_pad", "NOTSET");
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  if (w.strides.size() != axes || w.dilations.size() != axes || pads.size() != 2 * axes)
    call.wrong("strides, dilations or pads do not have a number for each axis of the kernel");
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
  const Shape shape = weight.shape();
  return call.integers("kernel_shape", Integers(shape.begin() + 2, shape.end()));
}

Axes spatial_axes(const Tensor& x) {
  Integers axes;
  for (int64_t i = 2; i < x.ndim(); ++i) axes.push_back(i);
  return axes;
}

}  // namespace plugrad::onnx
