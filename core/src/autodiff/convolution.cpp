#include "autodiff/convolution.h"

#include <algorithm>
#include <numeric>

namespace plugrad::autodiff {
namespace {

// Axes of (n, groups, co, out…, ci, kernel…), with `spatial` axes each in out and kernel.
constexpr size_t kLead = 3;
size_t spatial_of(const List& full) {
  return (full.size() - kLead - 1) / 2;
}
List kernel_of(const List& full) {
  return {full.begin() + static_cast<int64_t>(kLead + spatial_of(full) + 1), full.end()};
}

/// The op Add, the axes `first`, and those from `begin` to before `end`.
List sum_of_axes(List first, size_t begin, size_t end) {
  first.insert(first.begin(), static_cast<int64_t>(Op::Add));
  for (size_t i = begin; i < end; ++i) first.push_back(static_cast<int64_t>(i));
  return first;
}

Id padded_image(Context& c, Id image, const List& padding) {
  if (padding.empty()) return image;
  return move(c, Op::Pad, image, joined(List(4, 0), padding));
}

Id product_inside(Context& c, Id product, Id inside) {
  if (inside == kNoId) return product;
  return c.graph.where(inside, product, c.graph.constant(c.graph[product].dtype, int64_t{0}));
}

/// The first node below an operand, through movement ops, for which `good` holds.
template <class Good>
Id find_below(Context& c, Id id, Good good) {
  for (;; id = c.graph[id].src[0]) {
    if (good(id)) return id;
    if (!is_movement(c.graph[id].op)) return kNoId;
  }
}

/// Whether building `v` gives these operands; nodes are interned, so that ids decide.
bool proves(Context& c, const Convolution& v, const Operands& operands) {
  const List full = shape_of(c, operands.image), image = shape_of(c, v.image);
  const Windows windows{kernel_of(full), v.stride, v.dilation};
  for (size_t i = 0; i < windows.axes(); ++i)
    if (windows.stride[i] < 1 || windows.count(i, image[2 + i]) != full[kLead + i]) return false;
  const Operands built = convolution_operands(c, v);
  return built.image == operands.image && built.weight == operands.weight;
}

/// A convolution with these operands. The parameters are a guess, which is_same proves by building
/// it.
std::optional<Convolution> guess(Context& c, const Operands& operands) {
  const List full = shape_of(c, operands.image), kernel = kernel_of(full);
  const size_t n = kernel.size();
  const int64_t ci = full[kLead + n];
  const auto is_image = [&](Id id) {
    const List s = shape_of(c, id);
    return s.size() == 2 + n && s[0] == full[0] && s[1] == full[1] * ci;
  };
  const List weight = joined({full[1] * full[2], ci}, kernel);
  const auto is_weight = [&](Id id) { return shape_of(c, id) == weight; };
  Convolution v;
  v.weight = find_below(c, operands.weight, is_weight);
  v.groups = full[1];
  if (v.weight == kNoId) return std::nullopt;
  for (Id id = operands.image; (id = find_below(c, id, is_image)) != kNoId;
       id = c.graph[id].src[0]) {
    v.image = id;
    Windows w{kernel, List(n, 1), List(n, 1)};
    read_steps(c, operands.image, v.image, w);
    v.stride = w.stride;
    v.dilation = w.dilation;
    if (proves(c, v, operands)) return v;
    v.stride = kernel;  // adjacent windows
    v.dilation = List(n, 1);
    if (proves(c, v, operands)) return v;
    if (!is_movement(c.graph[id].op)) break;
  }
  return std::nullopt;
}

}  // namespace

Operands convolution_operands(Context& c, const Convolution& v) {
  const Id padded = padded_image(c, v.image, v.padding);
  const List image = shape_of(c, padded), weight = shape_of(c, v.weight);
  const List kernel(weight.begin() + 2, weight.end());
  const size_t n = kernel.size();
  const int64_t g = v.groups, ci = weight[1], co = weight[0] / g;
  const Windows windows{kernel, v.stride, v.dilation};
  List out(n);
  for (size_t i = 0; i < n; ++i) out[i] = windows.count(i, image[2 + i]);
  const List taps = joined({ci}, kernel);
  const List full = joined(joined({image[0], g, co}, out), taps);
  List order(full.size());
  std::iota(order.begin(), order.end(), 0);
  std::rotate(order.begin() + kLead, order.begin() + kLead + 1,
              order.begin() + static_cast<int64_t>(kLead + 1 + n));
  // The windows of a padded image as (batch, groups, 1, out…, channels, kernel…).
  const auto view = [&](Id of, const List& lead) {
    const Id x = move(c, Op::Reshape, window_view(c, of, windows),
                      joined(joined({lead[0], lead[1], 1, lead[2]}, out), kernel));
    return move(c, Op::Expand, move(c, Op::Permute, x, order), full);
  };
  const auto every_place = [&](Id of) {
    const Id x = move(c, Op::Reshape, of, joined(joined({1, g, co}, List(n, 1)), taps));
    return move(c, Op::Expand, x, full);
  };
  Operands operands{view(padded, {image[0], g, ci}), every_place(v.weight)};
  if (padded != v.image) {
    List sizes = shape_of(c, v.image), one(sizes.size(), 1);
    sizes[0] = sizes[1] = 1;
    const Id everywhere = move(c, Op::Reshape, c.graph.constant(DType::Bool, int64_t{1}), one);
    operands.inside =
        view(padded_image(c, move(c, Op::Expand, everywhere, sizes), v.padding), {1, 1, 1});
  }
  if (v.present != kNoId) {
    const Id present = every_place(v.present);
    operands.inside =
        operands.inside == kNoId ? present : c.graph.binary(Op::And, operands.inside, present);
  }
  return operands;
}

Id build_convolution(Context& c, const Convolution& v) {
  const Operands operands = convolution_operands(c, v);
  const Id product =
      product_inside(c, c.graph.binary(Op::Mul, operands.image, operands.weight), operands.inside);
  const List full = shape_of(c, product);
  return move(c, Op::Reduce, product, sum_of_axes({}, kLead + spatial_of(full), full.size()));
}

namespace {

/// A convolution with a product mask, which excludes padding of the image or the weight.
std::optional<Convolution> with_choice(Context& c, Convolution v, Id node) {
  const auto is_built = [&] { return build_convolution(c, v) == node; };
  const Id condition = c.graph[c.graph[node].src[0]].src[0];
  const bool both = c.graph[condition].op == Op::And;
  const List weight = shape_of(c, v.weight);
  v.present = find_below(c, both ? c.graph[condition].src[1] : condition,
                         [&](Id id) { return shape_of(c, id) == weight; });
  if (v.present != kNoId && is_built()) return v;
  if (!both) v.present = kNoId;
  // elements beyond the last window
  if (c.graph[v.image].op == Op::Shrink) v.image = c.graph[v.image].src[0];
  const Node n = c.graph[v.image];
  if (n.op != Op::Pad) return std::nullopt;
  const auto list = c.graph.arg_list(v.image);
  v.padding.assign(list.begin() + 4, list.end());
  v.image = n.src[0];
  return is_built() ? std::optional(v) : std::nullopt;
}

}  // namespace

std::optional<Convolution> match_convolution(Context& c, Id node) {
  const Graph& g = c.graph;
  if (g[node].op != Op::Reduce) return std::nullopt;
  Id product = g[node].src[0];
  const bool chosen = g[product].op == Op::Where;
  if (chosen) product = g[product].src[1];
  const List full = shape_of(c, product);
  if (g[product].op != Op::Mul || full.size() < kLead + 3 || full.size() % 2 != 0)
    return std::nullopt;
  if (!std::ranges::equal(g.arg_list(node), sum_of_axes({}, kLead + spatial_of(full), full.size())))
    return std::nullopt;
  const Id a = g[product].src[0], b = g[product].src[1];
  if (shape_of(c, a) != shape_of(c, b)) return std::nullopt;
  auto found = guess(c, {a, b});
  if (!found) found = guess(c, {b, a});
  return found && chosen ? with_choice(c, *found, node) : found;
}

ConvolutionGradient convolution_gradient(Context& c, const Convolution& v, Id node, Id gradient,
                                         bool to_image, bool to_weight) {
  const List y = shape_of(c, node), image = shape_of(c, v.image), weight = shape_of(c, v.weight);
  if (shape_of(c, gradient) != y) {  // a scalar for all elements
    gradient = move(c, Op::Expand, move(c, Op::Reshape, gradient, List(y.size(), 1)), y);
  }
  const size_t n = image.size() - 2;
  List merged = {y[0], y[1] * y[2]};
  merged.insert(merged.end(), y.begin() + kLead, y.begin() + static_cast<int64_t>(kLead + n));
  const Id dy = move(c, Op::Reshape, gradient, merged);
  ConvolutionGradient flows;
  if (to_image) {
    const List padded = shape_of(c, padded_image(c, v.image, v.padding));
    flows.image = transposed_convolution(c, {.y = dy,
                                             .weight = v.weight,
                                             .groups = v.groups,
                                             .stride = v.stride,
                                             .dilation = v.dilation,
                                             .image = List(padded.begin() + 2, padded.end()),
                                             .crop = v.padding,
                                             .present = v.present});
  }
  if (to_weight) {
    const Operands operands = convolution_operands(c, v);
    const List full = shape_of(c, operands.image);
    const Id spread = move(c, Op::Expand, move(c, Op::Reshape, dy, y), full);
    const Id product =
        product_inside(c, c.graph.binary(Op::Mul, spread, operands.image), operands.inside);
    const Id sum = move(c, Op::Reduce, product, sum_of_axes({0}, kLead, kLead + n));
    flows.weight = move(c, Op::Reshape, sum, weight);
  }
  return flows;
}

}  // namespace plugrad::autodiff
