// Writes the operators that export/recognised.h finds.
#include <algorithm>

#include "onnx/export/translation.h"

namespace plugrad::onnx {
namespace {

using autodiff::joined;

List sizes_of(const List& shape, const List& axes) {
  List sizes;
  for (const std::int64_t axis : axes) sizes.push_back(shape[static_cast<std::size_t>(axis)]);
  return sizes;
}

/// The permutation that sorts the axes.
List ascending(const List& axes) {
  List perm(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    const auto below = [&](std::int64_t axis) { return axis < axes[i]; };
    perm[static_cast<std::size_t>(std::ranges::count_if(axes, below))] =
        static_cast<std::int64_t>(i);
  }
  return perm;
}

/// Begins of all spatial axes, then their ends.
List onnx_pads(const List& padding, std::size_t axes) {
  List pads(2 * axes);
  for (std::size_t i = 0; i < axes && !padding.empty(); ++i) {
    pads[i] = padding[2 * i];
    pads[axes + i] = padding[2 * i + 1];
  }
  return pads;
}

}  // namespace

std::string Translation::matrix(Id value, const List& batch, const List& first,
                                const List& second) {
  const List sizes = shape(value);
  List order = joined(joined(batch, first), second);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (std::ranges::find(order, static_cast<std::int64_t>(i)) == order.end())
      order.push_back(static_cast<std::int64_t>(i));  // of size 1
  std::string x = in(value, wide(dtype(value)));
  // Axes of size 1 move freely.
  List larger;
  for (const std::int64_t axis : order)
    if (sizes[static_cast<std::size_t>(axis)] != 1) larger.push_back(axis);
  if (!std::ranges::is_sorted(larger)) x = to_.node("Transpose", {x}, {{"perm", order}});
  List as = sizes_of(sizes, batch);
  as.push_back(element_count(sizes_of(sizes, first)));
  as.push_back(element_count(sizes_of(sizes, second)));
  return reshape(x, as);
}

Translation::Elements Translation::of(Id id, const MatMulNode& given) {
  const List full = shape(graph_[id].src[0]);
  MatMulNode m = given;
  // The order of factors that leaves the axes in order.
  if (std::ranges::is_sorted(joined(joined(m.batch, m.columns), m.rows))) {
    std::swap(m.a, m.b);
    std::swap(m.rows, m.columns);
  }
  const std::string product = to_.node(
      "MatMul", {matrix(m.a, m.batch, m.rows, m.inner), matrix(m.b, m.batch, m.inner, m.columns)});
  const List axes = joined(joined(m.batch, m.rows), m.columns);
  const auto done = [&](const std::string& y, List sizes) -> Elements {
    return {cast(y, wide(dtype(id)), dtype(id)), std::move(sizes)};
  };
  if (std::ranges::is_sorted(axes)) {
    List sizes = sizes_of(full, m.batch);
    sizes.push_back(element_count(sizes_of(full, m.rows)));
    sizes.push_back(element_count(sizes_of(full, m.columns)));
    return done(product, std::move(sizes));
  }
  const std::string apart = reshape(product, sizes_of(full, axes));
  List sorted = axes;
  std::ranges::sort(sorted);
  return done(to_.node("Transpose", {apart}, {{"perm", ascending(axes)}}), sizes_of(full, sorted));
}

Translation::Elements Translation::of(Id id, const ConvNode& node) {
  const autodiff::Convolution& v = node.convolution;
  const DType own = dtype(id), computed = wide(own);
  std::string weight = in(v.weight, computed);
  if (v.present != kNoId) weight = where(name(v.present), weight, number(computed, 0));
  const std::size_t axes = v.stride.size();
  const std::string y = to_.node("Conv", {in(v.image, computed), weight},
                                 {{"group", v.groups},
                                  {"strides", v.stride},
                                  {"dilations", v.dilation},
                                  {"pads", onnx_pads(v.padding, axes)}});
  // The node's axes are (n, groups, co, …, 1, …).
  const List full = shape(id);
  List sizes = {full[0], full[1] * full[2]};
  sizes.insert(sizes.end(), full.begin() + 3, full.begin() + 3 + static_cast<std::ptrdiff_t>(axes));
  return {cast(y, computed, own), std::move(sizes)};
}

Translation::Elements Translation::of(Id id, const PoolNode& node) {
  // The axes before the image become one, in front of a channel.
  const std::size_t axes = node.windows.axes();
  const List image = shape(node.image);
  List as = {1, 1};
  for (std::size_t i = 0; i < image.size(); ++i) {
    if (i + axes < image.size())
      as[0] *= image[i];
    else
      as.push_back(image[i]);
  }
  const bool has_channels = image.size() == axes + 2;
  if (has_channels) as = image;
  const std::string x = has_channels ? name(node.image) : reshape(name(node.image), as);
  std::vector<NodeAttribute> attributes = {{"kernel_shape", node.windows.kernel},
                                           {"strides", node.windows.stride},
                                           {"dilations", node.windows.dilation},
                                           {"pads", onnx_pads(node.padding, axes)}};
  const DType own = dtype(id);
  std::string y;
  if (node.is_max) {
    y = to_.node("MaxPool", {x}, attributes);
  } else {
    const auto count = static_cast<double>(element_count(node.windows.kernel));
    attributes.emplace_back("count_include_pad", 1);
    y = to_.node("Mul", {to_.node("AveragePool", {x}, attributes), number(own, count)});
  }
  for (std::size_t i = 0; i < axes; ++i) as[i + 2] = shape(id)[image.size() - axes + i];
  return {y, as};
}

Translation::Elements Translation::of(Id id, const UnaryNode& node) {
  const DType own = dtype(id), computed = wide(own);
  std::vector<std::string> inputs = {in(node.x, computed)};
  if (node.op == "Clip") {
    inputs.push_back(number(computed, node.least));
    inputs.push_back(number(computed, node.most));
  }
  return {cast(to_.node(node.op, inputs), computed, own), shape(id)};
}

Translation::Elements Translation::of(Id id, const GatherNode& node) {
  const List values = shape(node.values), &indices = node.index_sizes, all = shape(id);
  const std::string i = reshape(in(node.indices, DType::I64), indices);
  const std::string zero = number(DType::I64, 0);
  const std::string inside =
      to_.node("And", {to_.node("GreaterOrEqual", {i, zero}),
                       to_.node("Less", {i, to_.number(DType::I64, 0, node.rows)})});
  const std::string safe = to_.node("Where", {inside, i, zero});
  const auto axis = static_cast<std::size_t>(node.axis);
  bool is_apart = true;
  for (std::size_t k = 0; k < all.size(); ++k)
    is_apart &= k == axis || values[k] == 1 || indices[k] == 1;
  std::string found;
  if (is_apart) {
    List larger, before, behind;  // axes of the indices; of the values around the indexed axis
    for (std::size_t k = 0; k < all.size(); ++k) {
      const auto at = static_cast<std::int64_t>(k);
      if (indices[k] != 1) larger.push_back(at);
      if (k != axis && values[k] != 1) (k < axis ? before : behind).push_back(at);
    }
    const List as = joined(joined(sizes_of(values, before), {node.rows}), sizes_of(values, behind));
    found = to_.node("Gather",
                     {reshape(name(node.values), as), reshape(safe, sizes_of(indices, larger))},
                     {{"axis", static_cast<std::int64_t>(before.size())}});
    const List order = joined(joined(before, larger), behind);
    if (!std::ranges::is_sorted(order))
      found = to_.node("Transpose", {found}, {{"perm", ascending(order)}});
    found = reshape(found, all);
  } else {
    List spread = all;
    spread[axis] = node.rows;
    const std::string from = expand(name(node.values), dtype(node.values), spread);
    found = to_.node("GatherElements", {from, to_.node("Expand", {safe, to_.integers(all)})},
                     {{"axis", node.axis}});
  }
  return {where(inside, found, number(dtype(id), 0), dtype(id)), all};
}

}  // namespace plugrad::onnx
