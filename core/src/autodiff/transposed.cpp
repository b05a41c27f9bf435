// Turns a transposed convolution into a convolution of y with the flipped weight. With a stride s,
// element s q + r of the image meets only the elements r, r + s, … of the kernel: each phase r is a
// group of output channels of one convolution with stride 1, and the results are interleaved. The
// kernels of shorter phases are padded, and products with the padding are masked.
#include <algorithm>
#include <optional>

#include "autodiff/convolution.h"

namespace plugrad::autodiff {
namespace {

/// One spatial axis.
struct ConvolutionAxis {
  int64_t kernel, stride, dilation;
  int64_t front;   // padding before the kernel
  int64_t phases;  // phases of the stride with elements of the kernel
  int64_t taps;    // elements of the kernel for each phase
  int64_t rows;    // elements of the image for each phase
};

/// y with stride - 1 zeros between the elements of axis `at`.
Id spread_axis(Context& c, Id y, size_t at, int64_t stride) {
  List shape = shape_of(c, y);
  const int64_t size = shape[at];
  List split = shape, pads(2 * (shape.size() + 1), 0);
  split.insert(split.begin() + static_cast<int64_t>(at) + 1, 1);
  pads[2 * (at + 1) + 1] = stride - 1;
  Id x = move(c, Op::Pad, move(c, Op::Reshape, y, split), pads);
  shape[at] = size * stride;
  x = move(c, Op::Reshape, x, shape);
  shape[at] = std::max<int64_t>((size - 1) * stride + 1, 0);
  return crop_to(c, x, shape);
}

/// The weight with (co, ci) transposed, kernels flipped and split by phases: (g * phases… * ci, co,
/// taps…). Padded with zeros, or false.
Id flipped_weight(Context& c, Id weight, int64_t g, const std::vector<ConvolutionAxis>& axes) {
  const List w = shape_of(c, weight);
  const int64_t co = w[0] / g, ci = w[1];
  const int64_t n = static_cast<int64_t>(axes.size());
  List pads(4, 0), split = {g, co, ci}, order = {0}, shape = {g * ci, co}, flips = {0, 0};
  for (const ConvolutionAxis& a : axes) {
    pads.insert(pads.end(), {a.front, a.taps * a.phases - a.kernel - a.front});
    split.insert(split.end(), {a.taps, a.phases});
    shape[0] *= a.phases;
    shape.push_back(a.taps);
    flips.push_back(a.taps > 1);
  }
  for (int64_t i = 0; i < n; ++i) order.push_back(4 + 2 * i);
  order.insert(order.end(), {2, 1});
  for (int64_t i = 0; i < n; ++i) order.push_back(3 + 2 * i);
  Id x = move(c, Op::Reshape, move(c, Op::Pad, weight, pads), split);
  x = move(c, Op::Reshape, move(c, Op::Permute, x, order), shape);
  return move(c, Op::Flip, x, flips);
}

/// Mask of the flipped weight without padding; kNoId for all.
Id flipped_presence(Context& c, const Transposed& t, const std::vector<ConvolutionAxis>& axes) {
  const auto is_whole = [](const ConvolutionAxis& a) { return a.taps * a.phases == a.kernel; };
  if (t.present != kNoId) return flipped_weight(c, t.present, t.groups, axes);
  if (std::ranges::all_of(axes, is_whole)) return kNoId;
  const List w = shape_of(c, t.weight);
  const Id one = move(c, Op::Reshape, c.graph.constant(DType::Bool, int64_t{1}), List(w.size(), 1));
  return flipped_weight(c, move(c, Op::Expand, one, w), t.groups, axes);
}

/// The axis without the elements that `first` and `last` cut off; `y` is its size in y. Pads the
/// kernel so that its phase r meets phase r of the cut image. None if the cut exceeds the padding
/// of y.
std::optional<ConvolutionAxis> cut_axis(ConvolutionAxis a, int64_t image, int64_t y, int64_t first,
                                        int64_t last, List& pads) {
  const int64_t skipped = (first + a.stride - 1) / a.stride;
  a.front = skipped * a.stride - first;
  a.phases = std::min(a.kernel + a.front, a.stride);
  a.taps = (a.kernel + a.front + a.phases - 1) / a.phases;
  a.rows = (image - first - last + a.stride - 1) / a.stride;
  const int64_t before = a.dilation * (a.taps - 1) - skipped, after = a.rows - y + skipped;
  if (before < 0 || after < 0) return std::nullopt;
  pads.insert(pads.end(), {before, after});
  return a;
}

/// Turns `x`, (n, groups, phases…, channels, rows…), into the image.
Id interleave(Context& c, Id x, int64_t batch, int64_t channels, const Transposed& t,
              const std::vector<ConvolutionAxis>& axes) {
  const int64_t n = static_cast<int64_t>(axes.size()), g = t.groups;
  if (std::ranges::all_of(axes, [](const ConvolutionAxis& a) { return a.stride == 1; }))
    return move(c, Op::Reshape, x, joined({batch, g * channels}, t.image));
  List split = {batch, g}, order = {0, 1, 2 + n}, pads(6, 0), merged = {batch, g * channels};
  for (const ConvolutionAxis& a : axes) split.push_back(a.phases);
  split.push_back(channels);
  for (const ConvolutionAxis& a : axes) split.push_back(a.rows);
  for (int64_t i = 0; i < n; ++i) {
    const ConvolutionAxis& a = axes[static_cast<size_t>(i)];
    order.insert(order.end(), {3 + n + i, 2 + i});
    pads.insert(pads.end(), {0, 0, 0, a.stride - a.phases});
    merged.push_back(a.rows * a.stride);
  }
  x = move(c, Op::Permute, move(c, Op::Reshape, x, split), order);
  x = move(c, Op::Reshape, move(c, Op::Pad, x, pads), merged);
  return crop_to(c, x, joined({batch, g * channels}, t.image));
}

/// `x` without the elements that `crop` counts before and after each spatial axis.
Id without_ends(Context& c, Id x, const List& crop) {
  if (std::ranges::all_of(crop, [](int64_t n) { return n == 0; })) return x;
  const List shape = shape_of(c, x);
  List box = {0, shape[0], 0, shape[1]};
  for (size_t i = 2; i < shape.size(); ++i)
    box.insert(box.end(), {crop[2 * i - 4], shape[i] - crop[2 * i - 3]});
  return move(c, Op::Shrink, x, box);
}

}  // namespace

Id transposed_convolution(Context& c, const Transposed& transposed) {
  Transposed t = transposed;
  if (t.crop.empty()) t.crop = List(2 * t.image.size(), 0);
  const List weight = shape_of(c, t.weight);
  const int64_t batch = shape_of(c, t.y)[0];
  Id y = t.y;
  std::vector<ConvolutionAxis> axes;
  List pads, dilation;
  for (size_t i = 0; i < t.image.size(); ++i) {
    ConvolutionAxis a{weight[2 + i], t.stride[i], t.dilation[i], 0, 1, 1, 1};
    if (a.kernel == 1) a.dilation = 1;
    if (a.stride > 1 && a.dilation > 1) {
      y = spread_axis(c, y, 2 + i, a.stride);
      a.stride = 1;
    }
    const int64_t size = shape_of(c, y)[2 + i], first = t.crop[2 * i], last = t.crop[2 * i + 1];
    if (const auto cut = cut_axis(a, t.image[i], size, first, last, pads)) {
      axes.push_back(*cut);
      t.image[i] -= first + last;
      t.crop[2 * i] = t.crop[2 * i + 1] = 0;
    } else {
      axes.push_back(*cut_axis(a, t.image[i], size, 0, 0, pads));
    }
    dilation.push_back(a.dilation);
  }
  if (std::ranges::all_of(pads, [](int64_t n) { return n == 0; })) pads.clear();
  Id flipped = flipped_weight(c, t.weight, t.groups, axes);
  const Id present = flipped_presence(c, t, axes);
  if (present != kNoId && t.store_weight)
    flipped = c.graph.add(Op::Contiguous, c.graph[flipped].dtype, {flipped});
  const Id back =
      build_convolution(c, {y, flipped, t.groups, List(axes.size(), 1), dilation, pads, present});
  return without_ends(c, interleave(c, back, batch, weight[1], t, axes), t.crop);
}

}  // namespace plugrad::autodiff
