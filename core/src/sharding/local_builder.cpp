#include "sharding/local_builder.h"

#include <limits>

namespace plugrad::sharding {
namespace {

/// The identity of a maximum: -inf, or the lowest integer.
Id lowest(Graph& graph, DType dtype) {
  if (is_float(dtype)) return graph.constant(dtype, -std::numeric_limits<double>::infinity());
  if (dtype == DType::Bool || is_unsigned(dtype)) return graph.constant(dtype, int64_t{0});
  const uint32_t bits = 8 * size_of(dtype);
  return graph.constant(dtype, std::numeric_limits<int64_t>::min() >> (64 - bits));
}

}  // namespace

Id LocalBuilder::reshape(Id x, std::span<const int64_t> to) {
  return std::ranges::equal(shape(x), to) ? x : move(Op::Reshape, x, to);
}

Id LocalBuilder::flat(Id x) {
  const int64_t count[] = {element_count(shape(x))};
  return reshape(x, count);
}

Id LocalBuilder::slice(Id x, size_t d, Part part) {
  const std::vector<int64_t> sizes = shape(x);
  if (part == Part{0, sizes[d]}) return x;
  std::vector<int64_t> box;
  for (size_t i = 0; i < sizes.size(); ++i)
    box.insert(box.end(), {i == d ? part.begin : 0, i == d ? part.end : sizes[i]});
  return move(Op::Shrink, x, box);
}

/// The index along dimension d, for every element of the shape.
Id LocalBuilder::counter(std::span<const int64_t> sizes, size_t d) {
  const Id iota = graph_.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(sizes[d]));
  std::vector<int64_t> line(sizes.size(), 1);
  line[d] = sizes[d];
  const Id row = move(Op::Reshape, iota, line);
  return std::ranges::equal(line, sizes) ? row : move(Op::Expand, row, sizes);
}

Id LocalBuilder::join(std::span<const Id> parts, size_t d) {
  std::vector<int64_t> whole = shape(parts[0]);
  whole[d] = 0;
  for (const Id part : parts) whole[d] += shape(part)[d];
  Id joined = kNoId;
  int64_t begin = 0;
  for (const Id part : parts) {
    const int64_t size = shape(part)[d];
    if (size == 0 && joined != kNoId) continue;
    std::vector<int64_t> pads(2 * whole.size());
    pads[2 * d] = begin;
    pads[2 * d + 1] = whole[d] - begin - size;
    const bool is_whole = size == whole[d];
    const Id framed = is_whole ? part : move(Op::Pad, part, pads);
    if (joined == kNoId || is_whole) {
      joined = framed;
    } else {
      const Id before =
          graph_.binary(Op::CmpLt, counter(whole, d), graph_.constant(DType::I32, begin));
      joined = graph_.where(before, joined, framed);
    }
    begin += size;
  }
  return joined;
}

Id LocalBuilder::join_equal(Id x, size_t count, std::span<const int64_t> part, size_t d) {
  std::vector<int64_t> blocks = {static_cast<int64_t>(count)}, whole(part.begin(), part.end());
  blocks.insert(blocks.end(), part.begin(), part.end());
  whole[d] *= blocks[0];
  if (d == 0) return reshape(x, whole);
  std::vector<int64_t> order;  // the number of the part comes before dimension d
  for (size_t i = 0; i < part.size(); ++i) {
    if (i == d) order.push_back(0);
    order.push_back(static_cast<int64_t>(i) + 1);
  }
  return reshape(move(Op::Permute, reshape(x, blocks), order), whole);
}

Id LocalBuilder::cut_equal(Id x, size_t count, size_t d) {
  std::vector<int64_t> blocks = shape(x);
  const auto parts = static_cast<int64_t>(count);
  blocks[d] /= parts;
  blocks.insert(blocks.begin() + static_cast<std::ptrdiff_t>(d), parts);
  std::vector<int64_t> order = {static_cast<int64_t>(d)};
  for (size_t i = 0; i < blocks.size(); ++i)
    if (i != d) order.push_back(static_cast<int64_t>(i));
  const Id split = reshape(x, blocks);
  return flat(d == 0 ? split : move(Op::Permute, split, order));
}

Id LocalBuilder::on(Id x, uint32_t device) {
  if (devices_[x] == device || devices_[x] == 0) return x;
  return graph_.add(Op::Copy, graph_[x].dtype, {x}, device);
}

Id LocalBuilder::tree(Op reduction, std::span<const Id> terms) {
  std::vector<Id> level(terms.begin(), terms.end());
  while (level.size() > 1) {
    std::vector<Id> next;
    for (size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(graph_.binary(reduction, level[i], level[i + 1]));
    if (level.size() % 2 != 0) next.push_back(level.back());
    level = std::move(next);
  }
  return level[0];
}

Id LocalBuilder::identity(Op reduction, DType dtype, std::span<const int64_t> sizes) {
  Id value = graph_.constant(dtype, int64_t{reduction == Op::Mul});
  if (reduction == Op::Max) value = lowest(graph_, dtype);
  if (reduction == Op::Add && is_float(dtype)) value = graph_.constant(dtype, -0.0);  // keeps -0
  if (sizes.empty()) return value;
  value = move(Op::Reshape, value, std::vector<int64_t>(sizes.size(), 1));
  return move(Op::Expand, value, sizes);
}

}  // namespace plugrad::sharding
