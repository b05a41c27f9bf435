#include "onnx/export/recognised.h"

#include <algorithm>
#include <limits>

namespace plugrad::onnx {
namespace {

using autodiff::Context;
using autodiff::shape_of;

bool has_elements(const List& shape) {
  return std::ranges::none_of(shape, [](std::int64_t n) { return n == 0; });
}

/// Axes of a Reduce.
List reduced_axes(const Graph& g, Id node) {
  const auto list = g.arg_list(node);
  return {list.begin() + 1, list.end()};
}

std::optional<MatMulNode> match_matmul(Context& c, Id node) {
  const Graph& g = c.graph;
  const Id product = g[node].src[0];
  if (g.arg_list(node)[0] != static_cast<std::int64_t>(Op::Add) || g[product].op != Op::Mul)
    return std::nullopt;
  const List full = shape_of(c, product), summed = reduced_axes(g, node);
  MatMulNode m{.a = below_expand(g, g[product].src[0]), .b = below_expand(g, g[product].src[1])};
  const List a = shape_of(c, m.a), b = shape_of(c, m.b);
  if (a.size() != full.size() || b.size() != full.size() || !has_elements(full))
    return std::nullopt;
  for (std::size_t i = 0; i < full.size(); ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    const bool of_a = a[i] == full[i], of_b = b[i] == full[i];
    if (std::ranges::find(summed, axis) != summed.end()) {
      if (!of_a || !of_b) return std::nullopt;
      m.inner.push_back(axis);
    } else if (full[i] == 1) {
      continue;
    } else if (!of_a && !of_b) {
      return std::nullopt;  // a repeated result
    } else {
      (of_a && of_b ? m.batch : of_a ? m.rows : m.columns).push_back(axis);
    }
  }
  // Elementwise products are no matrix product.
  if (m.rows.empty() && m.columns.empty()) return std::nullopt;
  return m;
}

// ONNX Runtime has no Conv of f64; as a product of windows it is a MatMul.
std::optional<ConvNode> match_conv(Context& c, Id node) {
  auto found = autodiff::match_convolution(c, node);
  const DType dtype = c.graph[node].dtype;
  if (!found || !is_float(dtype) || dtype == DType::F64) return std::nullopt;
  if (!has_elements(shape_of(c, found->image)) || !has_elements(shape_of(c, found->weight)))
    return std::nullopt;
  return ConvNode{*found};
}

/// Whether every element is true.
bool is_all_true(const Graph& g, Id node) {
  while (g[node].op == Op::Expand || g[node].op == Op::Reshape) node = g[node].src[0];
  return is_const(g, node) && g[node].dtype == DType::Bool && g[node].arg != 0;
}

/// The Pad that gives the image a border without effect: where(pad(true), pad(image), -infinity) for
/// the largest, pad(image) for a sum.
Id border_of(const Graph& g, const PoolNode& pool) {
  if (!pool.is_max) return g[pool.image].op == Op::Pad ? pool.image : kNoId;
  if (g[pool.image].op != Op::Where) return kNoId;
  const auto sources = g.sources(pool.image);
  const Id mask = sources[0], padded = sources[1], fill = below_expand(g, sources[2]);
  if (g[mask].op != Op::Pad || g[padded].op != Op::Pad || !is_const(g, fill)) return kNoId;
  const bool is_lowest = const_float(g, fill) == -std::numeric_limits<double>::infinity();
  const bool is_border =
      std::ranges::equal(g.arg_list(padded), g.arg_list(mask)) && is_all_true(g, g[mask].src[0]);
  return is_lowest && is_border ? padded : kNoId;
}

/// The pool of the image below its border.
PoolNode below_border(Context& c, PoolNode pool) {
  const Id border = border_of(c.graph, pool);
  if (border == kNoId || !has_elements(shape_of(c, c.graph[border].src[0]))) return pool;
  const auto pads = c.graph.arg_list(border);
  const std::size_t before = pads.size() / 2 - pool.windows.axes();
  for (std::size_t i = 0; i < pads.size(); ++i) {
    // A window has elements of the image.
    const std::size_t axis = i / 2;
    if (pads[i] >= (axis < before ? 1 : pool.windows.kernel[axis - before])) return pool;
  }
  pool.image = c.graph[border].src[0];
  pool.padding.assign(pads.begin() + static_cast<std::ptrdiff_t>(2 * before), pads.end());
  return pool;
}

// ONNX Runtime has no AveragePool of f64.
std::optional<PoolNode> match_pool(Context& c, Id node) {
  const Graph& g = c.graph;
  const auto op = static_cast<Op>(g.arg_list(node)[0]);
  const Id view = g[node].src[0];
  const DType dtype = g[node].dtype;
  if (dtype != DType::F32 && (dtype != DType::F64 || op != Op::Max)) return std::nullopt;
  if (op != Op::Max && op != Op::Add) return std::nullopt;
  const List full = shape_of(c, view), axes = reduced_axes(g, node);
  const std::size_t n = axes.size(), rank = full.size();
  if (n > 3 || rank < 2 * n || !has_elements(full)) return std::nullopt;
  for (std::size_t i = 0; i < n; ++i)
    if (axes[i] != static_cast<std::int64_t>(rank - n + i)) return std::nullopt;
  const List kernel(full.end() - static_cast<std::int64_t>(n), full.end());
  const auto found = autodiff::match_windows(c, view, kernel);
  if (!found) return std::nullopt;
  return below_border(c, PoolNode{found->image, found->windows, op == Op::Max});
}

std::vector<std::size_t> larger_axes(const List& shape) {
  std::vector<std::size_t> axes;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (shape[i] != 1) axes.push_back(i);
  return axes;
}

/// Whether `node`, below movement that only inserts and repeats axes of size 1, is 0, 1, 2, … along
/// `axis` alone.
bool counts_along(Context& c, Id node, std::size_t axis) {
  const Graph& g = c.graph;
  node = below_expand(g, node);
  if (larger_axes(shape_of(c, node)) != std::vector<std::size_t>{axis}) return false;
  for (; g[node].op == Op::Reshape || g[node].op == Op::Cast || g[node].op == Op::Expand;
       node = g[node].src[0])
    if (larger_axes(shape_of(c, g[node].src[0])).size() != 1) return false;
  return g[node].op == Op::Iota;
}

/// The comparison behind a condition: below repetition and below a reshape that only inserts axes of
/// size 1; `axes` are its axes for the larger ones of `outer`, the condition's shape without
/// repetition.
struct Comparison {
  Id node = kNoId;
  List outer{};
  std::vector<std::size_t> outer_axes{}, axes{};
};

std::optional<Comparison> match_comparison(Context& c, Id condition) {
  const Graph& g = c.graph;
  Comparison found{.node = below_expand(g, condition)};
  found.outer = shape_of(c, found.node);
  found.outer_axes = larger_axes(found.outer);
  while (g[found.node].op == Op::Reshape) found.node = g[found.node].src[0];
  const List inner = shape_of(c, found.node);
  found.axes = larger_axes(inner);
  if (g[found.node].op != Op::CmpEq || found.axes.size() != found.outer_axes.size())
    return std::nullopt;
  for (std::size_t i = 0; i < found.axes.size(); ++i)
    if (inner[found.axes[i]] != found.outer[found.outer_axes[i]]) return std::nullopt;
  return found;
}

std::optional<GatherNode> match_gather(Context& c, Id node) {
  const Graph& g = c.graph;
  const List axes = reduced_axes(g, node);
  const Id sum = g[node].src[0];
  if (g.arg_list(node)[0] != static_cast<std::int64_t>(Op::Add) || axes.size() != 1)
    return std::nullopt;
  const List full = shape_of(c, sum);
  if (g[sum].op != Op::Where || !has_elements(full)) return std::nullopt;
  const Id zero = below_expand(g, g[sum].src[2]);
  const auto hit = match_comparison(c, g[sum].src[0]);
  if (!hit || !is_const(g, zero) || const_float(g, zero) != 0) return std::nullopt;
  const auto axis = static_cast<std::size_t>(axes[0]);
  const auto at = std::ranges::find(hit->outer_axes, axis) - hit->outer_axes.begin();
  if (at == std::ssize(hit->outer_axes) || hit->outer.size() != full.size()) return std::nullopt;
  const std::size_t counted = hit->axes[static_cast<std::size_t>(at)];
  const Id p = g[hit->node].src[0], q = g[hit->node].src[1];
  const bool is_first = counts_along(c, p, counted);
  if (!is_first && !counts_along(c, q, counted)) return std::nullopt;
  GatherNode found{.values = below_expand(g, g[sum].src[1]),
                   .indices = below_expand(g, is_first ? q : p),
                   .index_sizes = List(full.size(), 1),
                   .axis = axes[0],
                   .rows = full[axis]};
  const List values = shape_of(c, found.values), indices = shape_of(c, found.indices);
  if (values.size() != full.size() || indices.size() <= counted || indices[counted] != 1)
    return std::nullopt;
  if (values[axis] != full[axis] || !is_integer(g[found.indices].dtype)) return std::nullopt;
  for (std::size_t i = 0; i < hit->axes.size(); ++i)
    found.index_sizes[hit->outer_axes[i]] = indices[hit->axes[i]];
  return found;
}

}  // namespace

Id below_expand(const Graph& g, Id node) {
  while (g[node].op == Op::Expand) node = g[node].src[0];
  return node;
}

MatchedOperator match_operator(Context& c, Id node) {
  if (auto found = match_unary(c, node)) return *found;
  if (c.graph[node].op != Op::Reduce) return {};
  if (auto found = match_conv(c, node)) return *found;
  if (auto found = match_matmul(c, node)) return *found;
  if (auto found = match_pool(c, node)) return *found;
  if (auto found = match_gather(c, node)) return *found;
  return {};
}

}  // namespace plugrad::onnx
