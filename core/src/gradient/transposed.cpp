// Convolution the other way, as a convolution of y with the flipped weight. With a stride s,
// element s q + r of the image meets the elements r, r + s, … of the kernel alone: each rest r is a
// group of out channels of one convolution with stride 1, and their results are interleaved.
#include <algorithm>

#include "gradient/convolution.h"

namespace plugrad::autodiff {
namespace {

/// One spatial axis.
struct Axis {
  int64_t kernel, stride, dilation;
  int64_t rests;  // of the stride that are computed; others have no element of the kernel
  int64_t taps;   // elements of the kernel for each rest
  int64_t rows;   // elements of the image for each rest
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
  return keep(c, x, shape);
}

/// Groups of (co, ci) matrices transposed, kernels turned by half and split by rests: (g * ci *
/// rests…, co, taps…).
Id flipped_weight(Context& c, const Transposed& t, const std::vector<Axis>& axes) {
  const List w = shape_of(c, t.weight);
  const int64_t g = t.groups, co = w[0] / g, ci = w[1];
  const int64_t n = static_cast<int64_t>(axes.size());
  List pads(4, 0), split = {g, co, ci}, order = {0, 2}, shape = {g * ci, co}, flips = {0, 0};
  for (const Axis& a : axes) {
    pads.insert(pads.end(), {0, a.taps * a.rests - a.kernel});
    split.insert(split.end(), {a.taps, a.rests});
    shape[0] *= a.rests;
    shape.push_back(a.taps);
    flips.push_back(a.taps > 1);
  }
  for (int64_t i = 0; i < n; ++i) order.push_back(4 + 2 * i);
  order.push_back(1);
  for (int64_t i = 0; i < n; ++i) order.push_back(3 + 2 * i);
  Id x = move(c, Op::Pad, t.weight, pads);
  const bool padded = x != t.weight;
  x = move(c, Op::Reshape, x, split);
  x = move(c, Op::Permute, x, order);
  x = move(c, Op::Reshape, x, shape);
  x = move(c, Op::Flip, x, flips);
  return padded && t.store_padded ? c.graph.add(Op::Contiguous, c.graph[x].dtype, {x}) : x;
}

/// (n, channels, rests…, rows…) of `x` to the image.
Id interleave(Context& c, Id x, int64_t batch, int64_t channels, const Transposed& t,
              const std::vector<Axis>& axes) {
  if (std::ranges::all_of(axes, [](const Axis& a) { return a.stride == 1; }))
    return move(c, Op::Reshape, x, joined({batch, channels}, t.image));
  const int64_t n = static_cast<int64_t>(axes.size());
  List split = {batch, channels}, order = {0, 1}, pads(4, 0), merged = {batch, channels};
  for (const Axis& a : axes) split.push_back(a.rests);
  for (const Axis& a : axes) split.push_back(a.rows);
  for (int64_t i = 0; i < n; ++i) {
    const Axis& a = axes[static_cast<size_t>(i)];
    order.insert(order.end(), {2 + n + i, 2 + i});
    pads.insert(pads.end(), {0, 0, 0, a.stride - a.rests});
    merged.push_back(a.rows * a.stride);
  }
  x = move(c, Op::Permute, move(c, Op::Reshape, x, split), order);
  x = move(c, Op::Reshape, move(c, Op::Pad, x, pads), merged);
  return keep(c, x, joined({batch, channels}, t.image));
}

/// Without the elements that `crop` counts before and after each spatial axis.
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
  std::vector<Axis> axes;
  List pads, dilation;
  for (size_t i = 0; i < t.image.size(); ++i) {
    Axis a{weight[2 + i], t.stride[i], t.dilation[i], 1, 1, 1};
    if (a.kernel == 1) a.dilation = 1;
    const bool whole = a.kernel < a.stride || a.kernel % a.stride == 0 || t.pad_weight;
    if (a.stride > 1 && (a.dilation > 1 || !whole)) {
      y = spread_axis(c, y, 2 + i, a.stride);
      a.stride = 1;
    }
    a.rests = std::min(a.kernel, a.stride);
    a.taps = (a.kernel + a.rests - 1) / a.rests;
    a.rows = (t.image[i] + a.stride - 1) / a.stride;
    int64_t before = a.dilation * (a.taps - 1), after = a.rows - shape_of(c, y)[2 + i];
    const int64_t first = t.crop[2 * i], last = t.crop[2 * i + 1];
    if (a.stride == 1 && first <= before && last <= after) {  // what is cut off is not computed
      before -= first;
      after -= last;
      a.rows -= first + last;
      t.image[i] -= first + last;
      t.crop[2 * i] = t.crop[2 * i + 1] = 0;
    }
    pads.insert(pads.end(), {before, after});
    dilation.push_back(a.dilation);
    axes.push_back(a);
  }
  // Few taps for each rest: loops that end at the borders would be too short to pay.
  if (std::ranges::any_of(axes, [](const Axis& a) { return a.stride > 1; })) {
    const Id padded = move(c, Op::Pad, y, joined(List(4, 0), pads));
    const bool keeps = padded != y && t.store_padded;
    y = keeps ? c.graph.add(Op::Contiguous, c.graph[padded].dtype, {padded}) : padded;
    pads.clear();
  }
  const Id back = build_convolution(
      c, {y, flipped_weight(c, t, axes), t.groups, List(axes.size(), 1), dilation, pads});
  return without_ends(c, interleave(c, back, batch, t.groups * weight[1], t, axes), t.crop);
}

}  // namespace plugrad::autodiff
