// With a stride s, element s q + r of the image meets only the elements r, r + s, … of the kernel,
// in the windows q, q - 1, …: a reduction over ceil(kernel / s) windows for each axis.
#include "autodiff/pooling.h"

#include <algorithm>
#include <numeric>

namespace plugrad::autodiff {
namespace {

/// The gradient along one axis: element s q + r is element s j + r - front of the kernel of window
/// q + skipped - dilation * j.
struct WindowAxis {
  int64_t kernel, stride, dilation;
  int64_t front;          // padding before the kernel
  int64_t taps;           // windows that may contain an element
  int64_t rows;           // elements of the image for each r
  int64_t before, after;  // padding of the windows: all windows read exist
};

WindowAxis axis_of(int64_t kernel, int64_t stride, int64_t dilation, int64_t image, int64_t windows,
                   int64_t padding) {
  const int64_t skipped = (padding + stride - 1) / stride;
  WindowAxis a{kernel, stride, kernel == 1 ? 1 : dilation, skipped * stride - padding, 0, 0, 0, 0};
  a.taps = (kernel + a.front + stride - 1) / stride;
  a.rows = (image + stride - 1) / stride;
  a.before = a.dilation * (a.taps - 1) - skipped;
  a.after = a.rows - windows + skipped;
  return a;
}

size_t lead_of(Context& c, const MaxPooling& p) {
  return shape_of(c, p.image).size() - p.windows.axes();
}

std::vector<WindowAxis> window_axes_of(Context& c, const MaxPooling& p, const List& windows) {
  const List image = shape_of(c, p.image);
  const size_t lead = lead_of(c, p);
  std::vector<WindowAxis> axes;
  for (size_t i = 0; i < p.windows.axes(); ++i)
    axes.push_back(axis_of(p.windows.kernel[i], p.windows.stride[i], p.windows.dilation[i],
                           image[lead + i], windows[lead + i], p.padding[2 * i]));
  return axes;
}

/// Whether the windows of an element are adjacent, and within the range of the padding.
bool can_gather(const std::vector<WindowAxis>& axes) {
  return std::ranges::all_of(axes, [](const WindowAxis& a) {
    return (a.stride == 1 || a.dilation == 1) && a.before >= 0 && a.after >= 0;
  });
}

/// Whether the node is a view of a constant true.
bool is_true(const Graph& g, Id id) {
  while (is_movement(g[id].op) && g[id].op != Op::Pad) id = g[id].src[0];
  return g[id].op == Op::Const && g[id].dtype == DType::Bool && g[id].arg != 0;
}

/// The pooling of the unpadded image, if the image is padded with a constant.
std::optional<MaxPooling> unpadded(Context& c, const MaxPooling& p) {
  const Graph& g = c.graph;
  const Node& n = g[p.image];
  if (n.op != Op::Where || g[n.src[2]].op != Op::Const) return std::nullopt;
  const Node &inside = g[n.src[0]], &padded = g[n.src[1]];
  if (inside.op != Op::Pad || padded.op != Op::Pad || inside.arg != padded.arg ||
      !is_true(g, inside.src[0]))
    return std::nullopt;
  const auto list = g.arg_list(n.src[1]);
  const auto end_of_lead = list.begin() + static_cast<int64_t>(2 * lead_of(c, p));
  if (std::any_of(list.begin(), end_of_lead, [](int64_t pad) { return pad != 0; }))
    return std::nullopt;
  return MaxPooling{padded.src[0], p.windows, List(end_of_lead, list.end())};
}

/// Values of the windows as each element of the image reads them: (lead…, q, 1, …, taps…).
Id gathered(Context& c, Id of, const std::vector<WindowAxis>& axes, size_t lead) {
  const List sizes = shape_of(c, of);
  const List outer(sizes.begin(), sizes.begin() + static_cast<int64_t>(lead));
  List pads(2 * lead, 0), shape = outer;
  Windows taps;
  for (const WindowAxis& a : axes) {
    pads.insert(pads.end(), {a.before, a.after});
    taps.kernel.push_back(a.taps);
    taps.stride.push_back(1);
    taps.dilation.push_back(a.dilation);
    shape.insert(shape.end(), {a.rows, 1});
  }
  const Id windows = window_view(c, move(c, Op::Pad, of, pads), taps);
  return move(c, Op::Reshape, windows, joined(shape, taps.kernel));
}

/// Mask of the elements in the kernel of the window: (1…, 1, r, …, taps…); kNoId for all.
Id presence(Context& c, const std::vector<WindowAxis>& axes, size_t lead) {
  if (std::ranges::all_of(axes, [](const WindowAxis& a) { return a.taps * a.stride == a.kernel; }))
    return kNoId;
  const size_t n = axes.size();
  List kernel, pads, split, order, shape(lead, 1), flips(2 * n, 0);
  for (size_t i = 0; i < n; ++i) {
    const WindowAxis& a = axes[i];
    kernel.push_back(a.kernel);
    pads.insert(pads.end(), {a.front, a.taps * a.stride - a.kernel - a.front});
    split.insert(split.end(), {a.taps, a.stride});
    order.push_back(static_cast<int64_t>(2 * i + 1));
    shape.insert(shape.end(), {1, a.stride});
    flips[n + i] = a.taps > 1;
  }
  for (size_t i = 0; i < n; ++i) order.push_back(static_cast<int64_t>(2 * i));
  for (const WindowAxis& a : axes) shape.push_back(a.taps);
  const Id one = move(c, Op::Reshape, c.graph.constant(DType::Bool, int64_t{1}), List(n, 1));
  const Id taps = move(c, Op::Pad, move(c, Op::Expand, one, kernel), pads);
  const Id by_phase = move(c, Op::Permute, move(c, Op::Reshape, taps, split), order);
  return move(c, Op::Reshape, move(c, Op::Flip, by_phase, flips), shape);
}

/// The image as (lead…, q, r, …, 1…).
Id split_image(Context& c, const MaxPooling& p, const std::vector<WindowAxis>& axes) {
  const List sizes = shape_of(c, p.image);
  const size_t lead = lead_of(c, p);
  List pads(2 * lead, 0), shape(sizes.begin(), sizes.begin() + static_cast<int64_t>(lead));
  for (size_t i = 0; i < axes.size(); ++i) {
    pads.insert(pads.end(), {0, axes[i].rows * axes[i].stride - sizes[lead + i]});
    shape.insert(shape.end(), {axes[i].rows, axes[i].stride});
  }
  shape.insert(shape.end(), axes.size(), 1);
  return move(c, Op::Reshape, move(c, Op::Pad, p.image, pads), shape);
}

/// Turns (lead…, q, r, …, 1…) into the image.
Id join_image(Context& c, Id x, const MaxPooling& p, const std::vector<WindowAxis>& axes) {
  const List sizes = shape_of(c, p.image);
  List shape(sizes.begin(), sizes.begin() + static_cast<int64_t>(lead_of(c, p)));
  for (const WindowAxis& a : axes) shape.push_back(a.rows * a.stride);
  return crop_to(c, move(c, Op::Reshape, x, shape), sizes);
}

}  // namespace

namespace {

/// Whether all axes from the first of these on are reduced, except axes of size 1.
bool reduces_the_last(std::span<const int64_t> axes, const List& shape) {
  size_t next = 0;
  for (auto i = static_cast<size_t>(axes[0]); i < shape.size(); ++i) {
    const bool reduced = next < axes.size() && axes[next] == static_cast<int64_t>(i);
    if (!reduced && shape[i] != 1) return false;
    next += reduced;
  }
  return true;
}

/// The windows of a view with a kernel of `n` last axes.
std::optional<WindowsOfImage> windows_of(Context& c, Id view, size_t n,
                                         const std::function<bool(Id)>& may_skip) {
  const List full = shape_of(c, view);
  const auto found = match_windows(c, view, List(full.end() - static_cast<int64_t>(n), full.end()));
  if (!found) return std::nullopt;
  for (Id id = view; id != found->image; id = c.graph[id].src[0])
    if (!may_skip(id)) return std::nullopt;
  return found;
}

}  // namespace

std::optional<MaxPooling> match_max_pooling(Context& c, Id node,
                                            const std::function<bool(Id)>& may_skip) {
  const Graph& g = c.graph;
  if (g[node].op != Op::Reduce || static_cast<Op>(g.arg_list(node)[0]) != Op::Max)
    return std::nullopt;
  // Windows that only split an axis are rows: the generic rule is as good.
  const Id view = g[node].src[0];
  if (g[view].op != Op::Permute) return std::nullopt;
  const List full = shape_of(c, view);
  if (!reduces_the_last(g.arg_list(node).subspan(1), full)) return std::nullopt;
  for (size_t n = full.size() - static_cast<size_t>(g.arg_list(node)[1]); 2 * n <= full.size();
       ++n) {
    const auto found = windows_of(c, view, n, may_skip);
    if (!found) continue;
    const MaxPooling p{found->image, found->windows, List(2 * n, 0)};
    const auto gathers = [&](const MaxPooling& m) {
      return can_gather(window_axes_of(c, m, full));
    };
    const auto inner = unpadded(c, p);
    if (inner && gathers(*inner) && may_skip(p.image) && may_skip(g[p.image].src[1])) return inner;
    return gathers(p) ? std::optional(p) : std::nullopt;
  }
  return std::nullopt;
}

Id max_pooling_gradient(Context& c, const MaxPooling& p, Id y, Id share) {
  Graph& g = c.graph;
  const size_t lead = lead_of(c, p), n = p.windows.axes();
  List windows = shape_of(c, y);
  windows.resize(lead + n);
  const std::vector<WindowAxis> axes = window_axes_of(c, p, windows);
  const auto read = [&](Id of) {
    return gathered(c, move(c, Op::Reshape, of, windows), axes, lead);
  };
  List full(shape_of(c, p.image));
  full.resize(lead);
  for (const WindowAxis& a : axes) full.insert(full.end(), {a.rows, a.stride});
  List reduced = {static_cast<int64_t>(Op::Add)};
  for (const WindowAxis& a : axes) {
    reduced.push_back(static_cast<int64_t>(full.size()));
    full.push_back(a.taps);
  }
  const auto spread = [&](Id of) { return move(c, Op::Expand, of, full); };
  const Id zero = g.constant(g[share].dtype, 0.0);
  const Id is_max = g.binary(Op::CmpEq, spread(split_image(c, p, axes)), spread(read(y)));
  const Id taken = spread(read(share)), others = g.binary(Op::Mul, taken, zero);
  Id term = g.where(is_max, taken, others);
  // For a window with a NaN maximum, `others` is NaN, too: only its own elements may take it.
  if (const Id present = presence(c, axes, lead); present != kNoId)
    term = g.where(spread(present), term, zero);
  return join_image(c, move(c, Op::Reduce, term, reduced), p, axes);
}

}  // namespace plugrad::autodiff
