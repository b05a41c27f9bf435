#include "autodiff/windows.h"

#include <algorithm>
#include <numeric>

namespace plugrad::autodiff {

List shape_of(Context& c, Id id) {
  const auto sizes = c.shapes[id];
  return {sizes.begin(), sizes.end()};
}

Id move(Context& c, Op op, Id x, const List& list) {
  const auto zero = [](int64_t n) { return n == 0; };
  const bool same = op == Op::Reshape || op == Op::Expand ? shape_of(c, x) == list
                    : op == Op::Pad || op == Op::Flip     ? std::ranges::all_of(list, zero)
                    : op == Op::Permute                   ? std::ranges::is_sorted(list)
                                                          : false;
  return same ? x : c.graph.add(op, c.graph[x].dtype, {x}, c.graph.list(list));
}

Id crop_to(Context& c, Id x, const List& sizes) {
  const List from = shape_of(c, x);
  if (std::ranges::equal(sizes, from)) return x;
  List box;
  for (size_t i = 0; i < from.size(); ++i) box.insert(box.end(), {0, sizes[i]});
  return move(c, Op::Shrink, x, box);
}

List joined(List lead, const List& rest) {
  lead.insert(lead.end(), rest.begin(), rest.end());
  return lead;
}

namespace {

/// The results of `part` for all axes in one list.
template <class Part>
List each_axis(size_t axes, Part part) {
  List all;
  for (size_t i = 0; i < axes; ++i) {
    const List of_axis = part(i);
    all.insert(all.end(), of_axis.begin(), of_axis.end());
  }
  return all;
}

/// Adjacent windows: each axis is cropped to whole windows and reshaped to (window, element).
Id adjacent_windows(Context& c, Id image, const Windows& w, const List& lead, const List& o) {
  const size_t n = w.axes();
  const Id cut = crop_to(
      c, image, joined(lead, each_axis(n, [&](size_t i) { return List{o[i] * w.stride[i]}; })));
  return move(c, Op::Reshape, cut,
              joined(lead, each_axis(n, [&](size_t i) { return List{o[i], w.kernel[i]}; })));
}

/// Windows of any stride and dilation. Each axis is repeated and reshaped to (kernel, row), where
/// row = size * f + dilation for an f >= 1. Element o * stride of row k is then element
/// k * row + o * stride of the repeated axis, which is element k * dilation + o * stride of the
/// image's axis (modulo its size).
Id shifted_windows(Context& c, Id image, const Windows& w, const List& lead, const List& o) {
  const List from = shape_of(c, image);
  const size_t n = w.axes();
  const auto size = [&](size_t i) { return from[lead.size() + i]; };
  List row(n), repeats(n);
  for (size_t i = 0; i < n; ++i) {
    // f is the least that gives row >= o * stride.
    const int64_t spare = o[i] * w.stride[i] - w.dilation[i];
    row[i] = size(i) * std::max<int64_t>((spare + size(i) - 1) / size(i), 1) + w.dilation[i];
    repeats[i] = (w.kernel[i] * row[i] + size(i) - 1) / size(i);
  }
  Id x = image;
  const auto add = [&](Op op, auto part) {
    const List list = joined(lead, each_axis(n, part));
    x = op == Op::Shrink ? crop_to(c, x, list) : move(c, op, x, list);
  };
  add(Op::Reshape, [&](size_t i) { return List{1, size(i)}; });
  add(Op::Expand, [&](size_t i) { return List{repeats[i], size(i)}; });
  add(Op::Reshape, [&](size_t i) { return List{repeats[i] * size(i)}; });
  add(Op::Shrink, [&](size_t i) { return List{w.kernel[i] * row[i]}; });
  add(Op::Reshape, [&](size_t i) { return List{w.kernel[i], row[i]}; });
  add(Op::Shrink, [&](size_t i) { return List{w.kernel[i], o[i] * w.stride[i]}; });
  add(Op::Reshape, [&](size_t i) { return List{w.kernel[i], o[i], w.stride[i]}; });
  add(Op::Shrink, [&](size_t i) { return List{w.kernel[i], o[i], 1}; });
  add(Op::Reshape, [&](size_t i) { return List{w.kernel[i], o[i]}; });
  return x;
}

}  // namespace

Id window_view(Context& c, Id image, const Windows& windows) {
  Windows w = windows;
  const size_t n = w.axes();
  const List from = shape_of(c, image);
  const List lead(from.begin(), from.end() - static_cast<int64_t>(n));
  List o(n);
  for (size_t i = 0; i < n; ++i) {
    // A kernel of one element has no dilation; 1 is the canonical form.
    if (w.kernel[i] == 1) w.dilation[i] = 1;
    o[i] = w.count(i, from[lead.size() + i]);
  }
  const bool adjacent = w.kernel == w.stride && w.dilation == List(n, 1);
  const Id x =
      adjacent ? adjacent_windows(c, image, w, lead, o) : shifted_windows(c, image, w, lead, o);
  List order(lead.size() + 2 * n);
  std::iota(order.begin(), order.end(), 0);
  // Each axis of the image is a pair of axes of x: (o, k) if adjacent, (k, o) otherwise. The result
  // has all o, then all k.
  for (size_t i = 0; i < n; ++i) {
    const size_t pair = lead.size() + 2 * i;
    order[lead.size() + i] = static_cast<int64_t>(adjacent ? pair : pair + 1);
    order[lead.size() + n + i] = static_cast<int64_t>(adjacent ? pair + 1 : pair);
  }
  return move(c, Op::Permute, x, order);
}

// Guesses stride and dilation from the shapes of the Reshapes between `image` and `view`; the
// caller checks the guess.
void read_steps(Context& c, Id view, Id image, Windows& w) {
  const List size = shape_of(c, image);
  const size_t n = w.axes(), lead = size.size() - n;
  const auto holds_kernel = [&](const List& shape, size_t parts) {
    if (shape.size() != lead + parts * n) return false;
    for (size_t i = 0; i < n; ++i)
      if (shape[lead + parts * i] != w.kernel[i]) return false;
    return true;
  };
  for (Id id = view; id != image; id = c.graph[id].src[0]) {
    const List shape = shape_of(c, id);
    if (c.graph[id].op != Op::Reshape) continue;
    for (size_t i = 0; i < n; ++i) {
      if (holds_kernel(shape, 3)) w.stride[i] = shape[lead + 3 * i + 2];
      if (holds_kernel(shape, 2) && shape[lead + 2 * i + 1] > size[lead + i] && w.kernel[i] > 1)
        w.dilation[i] = shape[lead + 2 * i + 1] % size[lead + i];
    }
  }
}

std::optional<WindowsOfImage> match_windows(Context& c, Id view, const List& kernel) {
  const List full = shape_of(c, view);
  const size_t n = kernel.size(), lead = full.size() - 2 * n;
  const auto is_view_of = [&](Id image, const Windows& w) {
    const List size = shape_of(c, image);
    for (size_t i = 0; i < n; ++i)
      if (w.stride[i] < 1 || w.count(i, size[lead + i]) != full[lead + i]) return false;
    return window_view(c, image, w) == view;
  };
  for (Id id = view; is_movement(c.graph[id].op);) {
    id = c.graph[id].src[0];
    const List size = shape_of(c, id);
    if (size.size() != lead + n ||
        !std::equal(size.begin(), size.end() - static_cast<int64_t>(n), full.begin()))
      continue;
    Windows w{kernel, List(n, 1), List(n, 1)};
    read_steps(c, view, id, w);
    if (is_view_of(id, w)) return WindowsOfImage{id, w};
    w = {kernel, kernel, List(n, 1)};  // adjacent
    if (is_view_of(id, w)) return WindowsOfImage{id, w};
  }
  return std::nullopt;
}

}  // namespace plugrad::autodiff
