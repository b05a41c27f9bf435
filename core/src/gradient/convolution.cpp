#include "gradient/convolution.h"

#include <algorithm>

#include "base/check.h"

namespace plugrad::autodiff {
namespace {

using List = std::vector<int64_t>;

List shape_of(Context& c, Id id) {
  const auto sizes = c.shapes[id];
  return {sizes.begin(), sizes.end()};
}

/// A movement node, unless it would change nothing.
Id move(Context& c, Op op, Id x, const List& list) {
  if ((op == Op::Reshape || op == Op::Expand) && shape_of(c, x) == list) return x;
  return c.graph.add(op, c.graph[x].dtype, {x}, c.graph.list(list));
}

/// The last axes cut to `sizes`, from their beginning.
Id keep(Context& c, Id x, const List& sizes) {
  const List from = shape_of(c, x);
  if (std::ranges::equal(sizes, from)) return x;
  List box;
  for (size_t i = 0; i < from.size(); ++i) box.insert(box.end(), {0, sizes[i]});
  return move(c, Op::Shrink, x, box);
}

List joined(const List& lead, std::initializer_list<int64_t> rest) {
  List all = lead;
  all.insert(all.end(), rest);
  return all;
}

/// Windows that lie side by side: a cut and a split of each axis.
Id adjacent_windows(Context& c, Id image, const Windows& w, const List& lead,
                    const int64_t (&o)[2]) {
  const Id cut = keep(c, image, joined(lead, {o[0] * w.stride[0], o[1] * w.stride[1]}));
  return move(c, Op::Reshape, cut, joined(lead, {o[0], w.kernel[0], o[1], w.kernel[1]}));
}

/// Windows in general. Repeating the axis and reading rows that are longer than it by the dilation
/// shifts row k by k * dilation: (k * (size * f + dilation) + o * stride) mod size = k * dilation +
/// o * stride.
Id shifted_windows(Context& c, Id image, const Windows& w, const List& lead,
                   const int64_t (&o)[2]) {
  const List from = shape_of(c, image);
  int64_t size[2], row[2], repeats[2], stride_rows[2];
  for (size_t i = 0; i < 2; ++i) {
    size[i] = from[lead.size() + i];
    const int64_t spare = o[i] * w.stride[i] - w.dilation[i];  // a row must hold all whole strides
    row[i] = size[i] * std::max<int64_t>((spare + size[i] - 1) / size[i], 1) + w.dilation[i];
    repeats[i] = (w.kernel[i] * row[i] + size[i] - 1) / size[i];
    stride_rows[i] = o[i] * w.stride[i];
  }
  Id x = move(c, Op::Reshape, image, joined(lead, {1, size[0], 1, size[1]}));
  x = move(c, Op::Expand, x, joined(lead, {repeats[0], size[0], repeats[1], size[1]}));
  x = move(c, Op::Reshape, x, joined(lead, {repeats[0] * size[0], repeats[1] * size[1]}));
  x = keep(c, x, joined(lead, {w.kernel[0] * row[0], w.kernel[1] * row[1]}));
  x = move(c, Op::Reshape, x, joined(lead, {w.kernel[0], row[0], w.kernel[1], row[1]}));
  x = keep(c, x, joined(lead, {w.kernel[0], stride_rows[0], w.kernel[1], stride_rows[1]}));
  x = move(c, Op::Reshape, x,
           joined(lead, {w.kernel[0], o[0], w.stride[0], w.kernel[1], o[1], w.stride[1]}));
  x = keep(c, x, joined(lead, {w.kernel[0], o[0], 1, w.kernel[1], o[1], 1}));
  return move(c, Op::Reshape, x, joined(lead, {w.kernel[0], o[0], w.kernel[1], o[1]}));
}

/// The image of build_convolution as (n, groups, co, oh, ow, ci, kh, kw), and the weight in the
/// same shape.
struct Operands {
  Id image, weight;
};

Operands convolution_operands(Context& c, const Convolution& v) {
  const List image = shape_of(c, v.image), weight = shape_of(c, v.weight);
  const int64_t n = image[0], g = v.groups, ci = weight[1], co = weight[0] / g, kh = weight[2],
                kw = weight[3];
  const Windows windows{{kh, kw}, v.stride, v.dilation};
  const int64_t oh = windows.count(0, image[2]), ow = windows.count(1, image[3]);
  const List full = {n, g, co, oh, ow, ci, kh, kw};
  Id x = window_view(c, v.image, windows);
  x = move(c, Op::Reshape, x, {n, g, 1, ci, oh, ow, kh, kw});
  x = move(c, Op::Permute, x, {0, 1, 2, 4, 5, 3, 6, 7});
  const Id w = move(c, Op::Reshape, v.weight, {1, g, co, 1, 1, ci, kh, kw});
  return {move(c, Op::Expand, x, full), move(c, Op::Expand, w, full)};
}

/// Below an operand, through movement ops, the first node for which `good` holds.
template <class Good>
Id find_below(Context& c, Id id, Good good) {
  for (;; id = c.graph[id].src[0]) {
    if (good(id)) return id;
    if (!is_movement(c.graph[id].op)) return kNoId;
  }
}

/// Stride and dilation of one axis, read off the window view: its row length and the split of that
/// row.
void read_steps(Context& c, Id operand, Id image, Convolution& v, const Windows& kernel) {
  const List size = shape_of(c, image);
  for (Id id = operand; id != image; id = c.graph[id].src[0]) {
    const List shape = shape_of(c, id);
    if (c.graph[id].op != Op::Reshape) continue;
    for (size_t i = 0; i < 2; ++i) {
      if (shape.size() == 8 && shape[2] == kernel.kernel[0] && shape[5] == kernel.kernel[1])
        v.stride[i] = shape[4 + 3 * i];
      if (shape.size() == 6 && shape[2] == kernel.kernel[0] && shape[4] == kernel.kernel[1] &&
          shape[3 + 2 * i] > size[2 + i] && kernel.kernel[i] > 1)
        v.dilation[i] = shape[3 + 2 * i] % size[2 + i];
    }
  }
}

/// Whether building `v` gives just these operands; nodes are interned, so equal means the same.
bool proves(Context& c, const Convolution& v, const Operands& operands) {
  const List full = shape_of(c, operands.image), image = shape_of(c, v.image);
  const Windows windows{{full[6], full[7]}, v.stride, v.dilation};
  if (windows.count(0, image[2]) != full[3] || windows.count(1, image[3]) != full[4]) return false;
  const Operands built = convolution_operands(c, v);
  return built.image == operands.image && built.weight == operands.weight;
}

/// A convolution with these operands. What is read off them is a guess; only building it again
/// proves it.
std::optional<Convolution> guess(Context& c, const Operands& operands) {
  const List full = shape_of(c, operands.image);
  const auto is_image = [&](Id id) {
    const List s = shape_of(c, id);
    return s.size() == 4 && s[0] == full[0] && s[1] == full[1] * full[5];
  };
  const auto is_weight = [&](Id id) {
    return shape_of(c, id) == List{full[1] * full[2], full[5], full[6], full[7]};
  };
  Convolution v{.weight = find_below(c, operands.weight, is_weight), .groups = full[1]};
  if (v.weight == kNoId) return std::nullopt;
  const Windows kernel{{full[6], full[7]}};
  for (Id id = operands.image; (id = find_below(c, id, is_image)) != kNoId;
       id = c.graph[id].src[0]) {
    v.image = id;
    v.stride = v.dilation = {1, 1};
    read_steps(c, operands.image, id, v, kernel);
    if (proves(c, v, operands)) return v;
    v.stride = kernel.kernel;  // windows side by side
    v.dilation = {1, 1};
    if (proves(c, v, operands)) return v;
    if (!is_movement(c.graph[id].op)) break;
  }
  return std::nullopt;
}

/// The gradient of y with stride - 1 zeros between its elements and `pads` zeros around, stored.
Id padded_gradient(Context& c, Id gradient, const std::array<int64_t, 2>& stride,
                   const std::array<int64_t, 4>& pads) {
  const List s = shape_of(c, gradient);
  Id x = gradient;
  if (stride[0] != 1 || stride[1] != 1) {
    x = move(c, Op::Reshape, x, {s[0], s[1], s[2], 1, s[3], 1});
    x = move(c, Op::Pad, x, {0, 0, 0, 0, 0, 0, 0, stride[0] - 1, 0, 0, 0, stride[1] - 1});
    x = move(c, Op::Reshape, x, {s[0], s[1], s[2] * stride[0], s[3] * stride[1]});
    x = keep(c, x, {s[0], s[1], (s[2] - 1) * stride[0] + 1, (s[3] - 1) * stride[1] + 1});
  }
  if (std::ranges::all_of(pads, [](int64_t p) { return p == 0; })) return x;
  x = move(c, Op::Pad, x, {0, 0, 0, 0, pads[0], pads[1], pads[2], pads[3]});
  return c.graph.add(Op::Contiguous, c.graph[x].dtype, {x});
}

/// Groups of (co, ci) matrices transposed, kernels turned by half.
Id flipped_weight(Context& c, const Convolution& v) {
  const List w = shape_of(c, v.weight);
  const int64_t g = v.groups, co = w[0] / g, ci = w[1];
  Id x = move(c, Op::Reshape, v.weight, {g, co, ci, w[2], w[3]});
  x = move(c, Op::Permute, x, {0, 2, 1, 3, 4});
  x = move(c, Op::Reshape, x, {g * ci, co, w[2], w[3]});
  return w[2] * w[3] == 1 ? x : move(c, Op::Flip, x, {0, 0, 1, 1});
}

}  // namespace

Id window_view(Context& c, Id image, const Windows& windows) {
  Windows w = windows;
  for (size_t i = 0; i < 2; ++i)
    if (w.kernel[i] == 1)
      w.dilation[i] = 1;  // it means nothing, and one form is found again more easily
  const List from = shape_of(c, image);
  const List lead(from.begin(), from.end() - 2);
  const int64_t o[2] = {w.count(0, from[lead.size()]), w.count(1, from[lead.size() + 1])};
  const bool adjacent = w.kernel == w.stride && w.dilation == std::array<int64_t, 2>{1, 1};
  const Id x =
      adjacent ? adjacent_windows(c, image, w, lead, o) : shifted_windows(c, image, w, lead, o);
  List order(lead.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  const int64_t at = static_cast<int64_t>(lead.size());
  return move(c, Op::Permute, x,
              adjacent ? joined(order, {at, at + 2, at + 1, at + 3})
                       : joined(order, {at + 1, at + 3, at, at + 2}));
}

Id build_convolution(Context& c, const Convolution& v) {
  const Operands operands = convolution_operands(c, v);
  const Id product = c.graph.binary(Op::Mul, operands.image, operands.weight);
  return move(c, Op::Reduce, product, {static_cast<int64_t>(Op::Add), 5, 6, 7});
}

std::optional<Convolution> match_convolution(Context& c, Id node) {
  const Graph& g = c.graph;
  if (g[node].op != Op::Reduce) return std::nullopt;
  if (!std::ranges::equal(g.arg_list(node), List{static_cast<int64_t>(Op::Add), 5, 6, 7}))
    return std::nullopt;
  const Id product = g[node].src[0];
  if (g[product].op != Op::Mul || shape_of(c, product).size() != 8) return std::nullopt;
  const Id a = g[product].src[0], b = g[product].src[1];
  if (shape_of(c, a) != shape_of(c, b)) return std::nullopt;
  if (const auto found = guess(c, {a, b})) return found;
  return guess(c, {b, a});
}

ConvolutionGradient convolution_gradient(Context& c, const Convolution& v, Id node, Id gradient,
                                         bool to_image, bool to_weight) {
  const List y = shape_of(c, node), image = shape_of(c, v.image), weight = shape_of(c, v.weight);
  if (shape_of(c, gradient) != y) {  // a number that stands for all elements
    gradient = move(c, Op::Expand, move(c, Op::Reshape, gradient, List(8, 1)), y);
  }
  Id dy = move(c, Op::Reshape, gradient, {y[0], y[1] * y[2], y[3], y[4]});
  ConvolutionGradient flows;
  if (to_image) {
    std::array<int64_t, 4> pads;
    for (size_t i = 0; i < 2; ++i) {
      const int64_t reach = v.dilation[i] * (weight[2 + i] - 1);
      pads[2 * i] = reach;  // the last rows of an image may lie under no window
      pads[2 * i + 1] = image[2 + i] - (y[3 + i] - 1) * v.stride[i] - 1;
    }
    const Id padded = padded_gradient(c, dy, v.stride, pads);
    const Id back =
        build_convolution(c, {padded, flipped_weight(c, v), v.groups, {1, 1}, v.dilation});
    flows.image = move(c, Op::Reshape, back, image);
  }
  if (to_weight) {
    const Operands operands = convolution_operands(c, v);
    const List full = shape_of(c, operands.image);
    const Id spread = move(c, Op::Expand, move(c, Op::Reshape, dy, y), full);
    const Id product = c.graph.binary(Op::Mul, spread, operands.image);
    const Id sum = move(c, Op::Reduce, product, {static_cast<int64_t>(Op::Add), 0, 3, 4});
    flows.weight = move(c, Op::Reshape, sum, weight);
  }
  return flows;
}

}  // namespace plugrad::autodiff
