// Boxes of an image: pooling within them, and which of them to keep.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "base/binding.h"
#include "base/check.h"
#include "onnx/ops/tables.h"
#include "onnx/ops/windows.h"
#include "plugrad/conv.h"
#include "plugrad/functional.h"
#include "tensor/sizes/sizes.h"

namespace plugrad::onnx {
namespace {

// Along one axis: the two elements that each sample lies between and their weights, (rois, bins,
// samples, 2), and whether the box has the sample, (rois, 1, samples).
struct Samples {
  Tensor index, weight, is_there, count;
};

// `start` and `length` of each box; count: its samples of a bin, (rois,) or one number.
Samples samples_of(const Tensor& start, const Tensor& length, int64_t bins, int64_t size,
                   const Tensor& count, int64_t most) {
  const auto wide = [](const Tensor& x) { return x.reshape({-1, 1, 1}); };
  const Tensor bin = wide(length) / static_cast<double>(bins);
  const Tensor sample = Tensor::arange(most, DType::F32);
  const Tensor counts = wide(count);
  const Tensor x = wide(start) + Tensor::arange(bins, DType::F32).reshape({bins, 1}) * bin +
                   (sample + 0.5) * bin / counts;
  const Tensor is_near = (x >= -1) & (x <= static_cast<double>(size));
  const Tensor inside = x.clamp(0, static_cast<double>(size - 1));
  const Tensor low = inside.floor(), part = inside - low;
  const Tensor weight = stack({1 - part, part}, -1);
  const Tensor index = stack({low, (low + 1).minimum(static_cast<double>(size - 1))}, -1);
  return {index.cast(DType::I64), is_near.unsqueeze(-1).where(weight, weight.zeros_like()),
          sample < counts, counts};
}

// The mean, or largest, of samples within each bin of each box. Source: He et al. 2017.
Values roi_align(Call& call) {
  const Tensor x = call[0], boxes = call[1].cast(DType::F32);
  call.require_shape(1, "rois", {boxes.size(0), 4});
  call.require_shape(2, "batch_indices", {boxes.size(0)});
  call.require_within(2, "batch_indices", 0, x.size(0) - 1);
  const int64_t height = x.size(2), width = x.size(3), channels = x.size(1);
  const bool is_half =
      call.text("coordinate_transformation_mode",
                call.opset() < 16 ? "output_half_pixel" : "half_pixel") == "half_pixel";
  const std::string_view mode = call.text("mode", "avg");
  const Tensor scaled = boxes * call.number("spatial_scale", 1) - (is_half ? 0.5 : 0.0);
  const int64_t ratio = call.integer("sampling_ratio", 0);
  // Without a ratio a bin has as many samples as it has elements, which the host must know.
  const auto samples_along = [&](int64_t axis, int64_t bins, int64_t size) {
    const Tensor start = scaled.slice(1, {axis, axis + 1}).squeeze(1);
    Tensor length = scaled.slice(1, {axis + 2, axis + 3}).squeeze(1) - start;
    if (!is_half) length = length.maximum(1.0);
    if (ratio > 0)
      return samples_of(start, length, bins, size,
                        Tensor(static_cast<double>(ratio)).cast(DType::F32).reshape({1}), ratio);
    const std::vector<double> numbers = call.numbers_input(1);
    double most = 1;
    const double scale = call.number("spatial_scale", 1);
    for (size_t i = static_cast<size_t>(axis); i + 2 < numbers.size(); i += 4)
      most = std::max(most, std::max((numbers[i + 2] - numbers[i]) * scale, is_half ? 0.0 : 1.0) /
                                static_cast<double>(bins));
    constexpr double kMostSamples = 4096;  // along one axis of a bin
    if (!(most <= kMostSamples))
      call.wrong(
          fmt::format("a bin has {} elements along an axis, more than {}", most, kMostSamples));
    const Tensor count = (length / static_cast<double>(bins)).ceil().maximum(0.0);
    return samples_of(start, length, bins, size, count, static_cast<int64_t>(std::ceil(most)));
  };
  const Samples across = samples_along(0, call.integer("output_width", 1), width);
  const Samples down = samples_along(1, call.integer("output_height", 1), height);
  // Axes: boxes, bins and samples down and across, then the elements around each sample.
  const auto of_rows = [](const Tensor& t) {
    return t.unsqueeze(2).unsqueeze(4).unsqueeze(6);  // (r, h, 1, s, 1, 2, 1)
  };
  const auto of_columns = [](const Tensor& t) {
    return t.unsqueeze(1).unsqueeze(3).unsqueeze(5);  // (r, 1, w, 1, s, 1, 2)
  };
  const Tensor image = call[2].cast(DType::I64).reshape({-1, 1, 1, 1, 1, 1, 1}) * (height * width);
  const Tensor index = image + of_rows(down.index) * width + of_columns(across.index);
  const Tensor weight = of_rows(down.weight) * of_columns(across.weight);
  const Tensor flat = x.cast(DType::F32).transpose(0, 1).reshape({channels, -1});
  const Tensor products = flat.index_select(1, index) * weight;  // (channels, r, h, w, s, s, 2, 2)
  const Tensor is_there = down.is_there.reshape({-1, 1, 1, down.is_there.size(2), 1, 1, 1}) &
                          across.is_there.reshape({-1, 1, 1, 1, across.is_there.size(2), 1, 1});
  Tensor pooled;
  if (mode == "max") {
    const Tensor largest =
        is_there.where(products, products.full_like(-kInfinity)).max({-4, -3, -2, -1});
    pooled = (largest == -kInfinity).where(largest.zeros_like(), largest);
  } else {
    const Tensor count = (down.count * across.count).reshape({-1, 1, 1}).maximum(1.0);
    pooled = is_there.where(products, products.zeros_like()).sum({-4, -3, -2, -1}) / count;
  }
  return {pooled.transpose(0, 1).cast(x.dtype())};
}

// Which elements of an axis each bin has: (rois, bins, size). `start` and `length` are whole.
Tensor bins_of(const Tensor& start, const Tensor& length, int64_t bins, int64_t size) {
  const Tensor bin = length.reshape({-1, 1}) / static_cast<double>(bins);
  const Tensor number = Tensor::arange(bins, DType::F32), first = start.reshape({-1, 1});
  const Tensor begin = (number * bin).floor() + first, end = ((number + 1) * bin).ceil() + first;
  const Tensor at = Tensor::arange(size, DType::F32);
  return (at >= begin.unsqueeze(-1)) & (at < end.unsqueeze(-1));
}

// The largest element of each bin; 0 for a bin without any. Source: Girshick 2015.
Values max_roi_pool(Call& call) {
  const Tensor x = call[0], boxes = call[1].cast(DType::F32);
  const Integers shape = call.integers("pooled_shape");
  if (shape.size() != 2) call.wrong("pooled_shape must be two numbers");
  const auto column = [&](int64_t i) { return boxes.slice(1, {i, i + 1}).squeeze(1); };
  const double scale = call.number("spatial_scale", 1);
  const auto bins_along = [&](int64_t i, int64_t bins, int64_t size) {
    const Tensor start = (column(i) * scale + 0.5).floor();
    const Tensor end = (column(i + 2) * scale + 0.5).floor();
    return bins_of(start, (end - start + 1).maximum(1.0), bins, size);
  };
  const Tensor across = bins_along(1, shape[1], x.size(3)),
               down = bins_along(2, shape[0], x.size(2));
  const Tensor images = x.index_select(0, column(0).cast(DType::I64));  // (r, c, h, w)
  const Tensor lowest = Tensor(-kInfinity).cast(x.dtype());
  const Tensor rows =
      across.unsqueeze(1).unsqueeze(1).where(images.unsqueeze(3), lowest).max(-1);  // (r, c, h, q)
  const Tensor pooled = down.unsqueeze(1)
                            .unsqueeze(3)
                            .where(rows.transpose().unsqueeze(2), lowest)
                            .max(-1);  // (r, c, p, q)
  return {(pooled == -kInfinity).where(pooled.zeros_like(), pooled)};
}

struct ImageBox {
  float low_y, low_x, high_y, high_x;
  float area() const { return (high_y - low_y) * (high_x - low_x); }
};

ImageBox box_of(const float* b, bool is_centred) {
  if (is_centred) return {b[1] - b[3] / 2, b[0] - b[2] / 2, b[1] + b[3] / 2, b[0] + b[2] / 2};
  return {std::min(b[0], b[2]), std::min(b[1], b[3]), std::max(b[0], b[2]), std::max(b[1], b[3])};
}

bool overlaps(const ImageBox& a, const ImageBox& b, float threshold) {
  const float height = std::min(a.high_y, b.high_y) - std::max(a.low_y, b.low_y);
  const float width = std::min(a.high_x, b.high_x) - std::max(a.low_x, b.low_x);
  if (height <= 0 || width <= 0) return false;
  const float shared = height * width, joined = a.area() + b.area() - shared;
  return a.area() > 0 && b.area() > 0 && joined > 0 && shared / joined > threshold;
}

// Boxes from the highest score on, without those that overlap an earlier one.
Integers kept_boxes(const std::vector<ImageBox>& boxes, const double* scores, size_t most,
                    float overlap, std::optional<double> lowest) {
  Integers order;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (!lowest || scores[i] > *lowest) order.push_back(static_cast<int64_t>(i));
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  Integers kept;
  for (const int64_t candidate : order) {
    if (kept.size() >= most) break;
    poll_interruption();
    const ImageBox& box = boxes[static_cast<size_t>(candidate)];
    if (std::ranges::none_of(kept, [&](int64_t other) {
          return overlaps(box, boxes[static_cast<size_t>(other)], overlap);
        }))
      kept.push_back(candidate);
  }
  return kept;
}

// The host decides how many boxes are kept.
Values non_max_suppression(Call& call) {
  const Shape shape = call[1].shape();  // batch, classes, boxes
  if (shape.size() != 3 || call[0].ndim() != 3) call.wrong("boxes and scores must have three axes");
  call.require_shape(0, "boxes", {shape[0], shape[2], 4});
  const std::vector<double> boxes = as_numbers(call.data(0)), scores = as_numbers(call.data(1));
  const int64_t most = call.has(2) ? std::max<int64_t>(call.integer_input(2), 0) : 0;
  const auto overlap = static_cast<float>(call.has(3) ? call.numbers_input(3).at(0) : 0);
  std::optional<double> lowest;
  if (call.has(4)) lowest = call.numbers_input(4).at(0);
  const auto count = static_cast<size_t>(shape[2]);
  std::vector<uint64_t> rows;
  for (int64_t n = 0; n < shape[0]; ++n) {
    std::vector<ImageBox> of_image;
    for (size_t i = 0; i < count; ++i) {
      std::array<float, 4> b{};
      for (size_t k = 0; k < 4; ++k)
        b[k] = static_cast<float>(boxes.at((static_cast<size_t>(n) * count + i) * 4 + k));
      of_image.push_back(box_of(b.data(), call.integer("center_point_box", 0) != 0));
    }
    for (int64_t c = 0; c < shape[1]; ++c) {
      const size_t first = static_cast<size_t>(n * shape[1] + c) * count;
      for (const int64_t box :
           kept_boxes(of_image, scores.data() + first, static_cast<size_t>(most), overlap, lowest))
        for (const int64_t number : {n, c, box}) rows.push_back(static_cast<uint64_t>(number));
    }
  }
  const auto kept = static_cast<int64_t>(rows.size() / 3);
  return {Value::known({{kept, 3}, DType::I64, std::move(rows)})};
}

// Each element goes back to its index in the tensor that was pooled; a larger output_shape adds
// zeros after it.
Values max_unpool(Call& call) {
  const Tensor x = call[0];
  call.require_shape(1, "I", x.shape());
  const Integers kernel = call.integers("kernel_shape");
  const size_t axes = kernel.size();
  const Integers strides = call.integers("strides", Integers(axes, 1));
  const Integers pads = call.integers("pads", Integers(2 * axes, 0));
  require_axes(call, x, axes, {strides});
  if (pads.size() != 2 * axes) call.wrong("pads do not have two numbers for each axis");
  Shape shape{x.size(0), x.size(1)};
  for (size_t i = 0; i < axes; ++i)
    shape.push_back((x.size(static_cast<int64_t>(2 + i)) - 1) * strides[i] + kernel[i] - pads[i] -
                    pads[axes + i]);
  const int64_t elements = tensor::checked_count("onnx", shape);
  const Tensor result = Tensor::zeros({elements}, x.dtype())
                            .scatter(0, call[1].flatten(), x.flatten())
                            .reshape(shape);
  if (!call.has(2)) return {result};
  const Integers wanted = call.integers(2);
  if (wanted.size() != shape.size()) call.wrong("output_shape does not have the axes of x");
  std::vector<std::optional<int64_t>> sizes;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (wanted[i] < shape[i]) call.wrong("output_shape is smaller than the windows reach");
    sizes.emplace_back(wanted[i]);
  }
  return {result.pad_to(sizes)};
}

constexpr OperatorRow kRegionRows[] = {
    {"MaxRoiPool", max_roi_pool},
    {"MaxUnpool", max_unpool},
    {"NonMaxSuppression", non_max_suppression},
    {"RoiAlign", roi_align},
};

}  // namespace

std::span<const OperatorRow> region_operators() {
  return kRegionRows;
}

}  // namespace plugrad::onnx
