// Pooling.
#include <algorithm>

#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"
#include "tensor/compute_dtype.h"

namespace plugrad::onnx {
namespace {

// The number of windows along an axis, which ceil_mode rounds up.
int64_t window_count(Call& call, const Window& w, size_t axis, int64_t size, bool rounds_up) {
  const int64_t reach = (w.kernel[axis] - 1) * w.dilations[axis] + 1;
  const int64_t room = size + w.pads[axis].first + w.pads[axis].second - reach;
  if (room < 0)
    call.wrong(fmt::format("a window reaches over {} elements, axis {} has {} with its padding",
                           reach, axis + 2, room + reach));
  int64_t count = room / w.strides[axis] + 1;
  // A further window must begin within the tensor or its left padding.
  if (rounds_up && room % w.strides[axis] != 0 &&
      count * w.strides[axis] < size + w.pads[axis].first)
    ++count;
  return count;
}

Integers window_counts(Call& call, const Tensor& x, const Window& w) {
  const bool rounds_up = call.integer("ceil_mode", 0) != 0;
  Integers counts;
  for (size_t i = 0; i < w.kernel.size(); ++i) {
    const auto axis = static_cast<int64_t>(2 + i);
    call.require_fixed(x, axis);
    counts.push_back(window_count(call, w, i, x.size(axis), rounds_up));
  }
  return counts;
}

// The windows of a tensor as last axes: x is padded with `fill` so that all windows are whole.
Tensor windows_of(const Tensor& x, const Window& w, const Integers& counts, const Tensor& fill) {
  const size_t axes = w.kernel.size();
  std::vector<Pads::Pair> pads(static_cast<size_t>(x.ndim()));
  for (size_t i = 0; i < axes; ++i) {
    const int64_t size = x.size(static_cast<int64_t>(2 + i));
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    const int64_t needed = (counts[i] - 1) * w.strides[i] + reach;
    pads[2 + i] = {w.pads[i].first, needed - size - w.pads[i].first};
  }
  Tensor windows = x.pad(pads, fill);
  for (size_t i = 0; i < axes; ++i) {
    const int64_t reach = (w.kernel[i] - 1) * w.dilations[i] + 1;
    windows = windows.unfold(static_cast<int64_t>(2 + i), reach, w.strides[i]);
    windows = windows.slice(-1, {std::nullopt, std::nullopt, w.dilations[i]});
  }
  return windows;
}

Axes last_axes(size_t count) {
  Integers axes;
  for (size_t i = 1; i <= count; ++i) axes.push_back(-static_cast<int64_t>(i));
  return axes;
}

// The indices are those of the flat tensor, rows first unless storage_order says columns.
Tensor places_of_maxima(Call& call, const Tensor& x, const Window& w, const Tensor& windows) {
  const size_t axes = w.kernel.size();
  int64_t step = 1;
  const bool columns_first = call.integer("storage_order", 0) != 0;
  Tensor place;
  for (size_t k = 0; k < axes; ++k) {
    const size_t i = columns_first ? k : axes - 1 - k;
    Shape along(static_cast<size_t>(x.ndim()), 1);
    along[2 + i] = x.size(static_cast<int64_t>(2 + i));
    const Tensor part = Tensor::arange(along[2 + i], DType::I64).reshape(along) * step;
    place = place.defined() ? place + part : part;
    step *= along[2 + i];
  }
  const int64_t planes = x.size(0) * x.size(1);
  const Tensor plane = Tensor::arange(planes, DType::I64).reshape([&] {
    Shape shape(static_cast<size_t>(x.ndim()), 1);
    shape[0] = x.size(0);
    shape[1] = x.size(1);
    return shape;
  }()) * step;
  const Integers counts = window_counts(call, x, w);
  const Tensor all = windows_of((plane + place).expand(x.shape()), w, counts, 0);
  const Tensor flat = windows.flatten(-static_cast<int64_t>(axes), -1);
  const Tensor first = flat.argmax(-1, true).cast(DType::I64);
  return all.flatten(-static_cast<int64_t>(axes), -1).gather(-1, first).squeeze(-1);
}

Values max_pool(Call& call) {
  const Tensor x = call[0];
  const Window w = window_of(call, x, call.integers("kernel_shape"));
  for (size_t i = 0; i < w.kernel.size(); ++i)
    if (std::max(w.pads[i].first, w.pads[i].second) > (w.kernel[i] - 1) * w.dilations[i])
      call.wrong("a window would lie in the pads alone");
  const Integers counts = window_counts(call, x, w);
  const Tensor windows = windows_of(x, w, counts, tensor::lowest(x.dtype()));
  Values results{windows.max(last_axes(w.kernel.size()))};
  if (call.wants(1)) results.emplace_back(places_of_maxima(call, x, w, windows));
  return results;
}

Values max_pool_of_last_channels(Call& call) {
  const Tensor x = channels_first(call[0]);
  const Window w = window_of(call, x, call.integers("kernel_shape"));
  const Tensor windows = windows_of(x, w, window_counts(call, x, w), tensor::lowest(x.dtype()));
  return {channels_last(windows.max(last_axes(w.kernel.size())))};
}

Values average_pool(Call& call) {
  return {average_pooled(call, call[0])};
}

Values lp_pool(Call& call) {
  const Tensor x = call[0];
  const Window w = window_of(call, x, call.integers("kernel_shape"));
  const auto p = static_cast<double>(call.integer("p", 2));
  const Integers counts = window_counts(call, x, w);
  const Tensor windows = windows_of(x.abs(), w, counts, 0);
  return {windows.pow(p).sum(last_axes(w.kernel.size())).pow(1 / p)};
}

Values global_average_pool(Call& call) {
  return {call[0].mean(spatial_axes(call[0]), true)};
}
Values global_max_pool(Call& call) {
  return {call[0].max(spatial_axes(call[0]), true)};
}
Values global_lp_pool(Call& call) {
  const auto p = static_cast<double>(call.integer("p", 2));
  return {call[0].abs().pow(p).sum(spatial_axes(call[0]), true).pow(1 / p)};
}

constexpr OperatorRow kPoolingRows[] = {
    {"AveragePool", average_pool, kVariableSizes},
    {"AveragePool", average_pool, kVariableSizes, kBlockedChannels},
    {"GlobalAveragePool", global_average_pool, kVariableSizes},
    {"GlobalAveragePool", global_average_pool, kVariableSizes, kBlockedChannels},
    {"GlobalLpPool", global_lp_pool, kVariableSizes},
    {"GlobalMaxPool", global_max_pool, kVariableSizes},
    {"GlobalMaxPool", global_max_pool, kVariableSizes, kBlockedChannels},
    {"LpPool", lp_pool, kVariableSizes},
    {"MaxPool", max_pool, kVariableSizes},
    {"MaxPool", max_pool, kVariableSizes, kBlockedChannels},
    {"NhwcMaxPool", max_pool_of_last_channels, false, kMicrosoft},
};

}  // namespace

// An average leaves out the padding unless count_include_pad says otherwise; the elements beyond it
// that ceil_mode adds never count.
Tensor average_pooled(Call& call, const Tensor& x) {
  const Window w = window_of(call, x, call.integers("kernel_shape"));
  const Integers counts = window_counts(call, x, w);
  const Axes axes = last_axes(w.kernel.size());
  const Tensor total = windows_of(x, w, counts, 0).sum(axes);
  Tensor counted = Tensor::ones(x.shape(), x.dtype());
  Window of_count = w;
  if (call.integer("count_include_pad", 0) != 0) {
    std::vector<Pads::Pair> pads(static_cast<size_t>(x.ndim()));
    for (size_t i = 0; i < w.pads.size(); ++i) pads[2 + i] = w.pads[i];
    counted = counted.pad(pads, 1);
    of_count.pads.assign(w.pads.size(), {0, 0});
  }
  return total / windows_of(counted, of_count, counts, 0).sum(axes);
}

std::span<const OperatorRow> pooling_operators() {
  return kPoolingRows;
}

}  // namespace plugrad::onnx
