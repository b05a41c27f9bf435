#include "autodiff/parts.h"

#include <algorithm>
#include <map>

namespace plugrad::autodiff {
namespace {

constexpr size_t kFewParts = 16;  // parts that are added as they are; see schedule/join_parts

struct Part {
  int64_t begin, end;
  Id pad;
};

bool is_within(std::span<const int64_t> box, std::span<const int64_t> pads,
               std::span<const int64_t> inner) {
  for (size_t i = 0; i < inner.size(); ++i)
    if (pads[2 * i] < 0 || box[2 * i] < pads[2 * i] || box[2 * i + 1] > pads[2 * i] + inner[i])
      return false;
  return true;
}

/// Distributes the parts over the fewest lists without overlap, each in ascending order.
std::vector<std::vector<Part>> layers_of(std::vector<Part> parts) {
  std::ranges::stable_sort(parts, {}, &Part::begin);
  std::vector<std::vector<Part>> layers;
  std::multimap<int64_t, size_t> ends;  // of the layers
  for (const Part& part : parts) {
    auto layer = ends.upper_bound(part.begin);
    if (layer == ends.begin()) {
      ends.emplace(part.end, layers.size());
      layers.push_back({part});
      continue;
    }
    const size_t number = (--layer)->second;
    ends.erase(layer);
    ends.emplace(part.end, number);
    layers[number].push_back(part);
  }
  return layers;
}

/// Selects each part for its range by a chain of Wheres, as cat records it.
Id join(Context& context, const std::vector<Part>& parts, size_t axis) {
  Graph& g = context.graph;
  Vjp vjp(context, parts[0].pad, parts[0].pad);
  const std::vector<int64_t> shape = vjp.shape(parts[0].pad);
  std::vector<int64_t> row(shape.size(), 1);
  row[axis] = shape[axis];
  const Id counter = vjp.move(
      Op::Reshape, g.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(shape[axis])), row);
  Id all = parts[0].pad;
  for (size_t i = 1; i < parts.size(); ++i) {
    const Id before = g.binary(Op::CmpLt, counter, g.constant(DType::I32, parts[i].begin));
    all = g.where(vjp.spread(before, shape), all, parts[i].pad);
  }
  return all;
}

}  // namespace

Id cut(Vjp& vjp, Id a, std::vector<int64_t> box) {
  const Graph& g = vjp.graph;
  for (;;) {
    const Op op = g[a].op;
    if (op != Op::Shrink && op != Op::Pad) break;
    const std::vector<int64_t> inner = vjp.shape(g[a].src[0]);
    const auto list = g.arg_list(a);
    if (op == Op::Pad && !is_within(box, list, inner)) break;
    for (size_t i = 0; i < box.size(); ++i)
      box[i] += op == Op::Pad ? -list[i / 2 * 2] : list[i / 2 * 2];
    a = g[a].src[0];
  }
  const std::vector<int64_t> shape = vjp.shape(a);
  bool is_whole = true;
  for (size_t i = 0; i < shape.size(); ++i)
    is_whole = is_whole && box[2 * i] == 0 && box[2 * i + 1] == shape[i];
  return is_whole ? a : vjp.move(Op::Shrink, a, box);
}

std::optional<Prefix> prefix_of(Vjp& vjp) {
  const Graph& g = vjp.graph;
  const std::vector<int64_t> whole = vjp.shape(vjp.y());
  Id condition = vjp.x(0);
  if (g[condition].op == Op::Expand) condition = g[condition].src[0];
  if (g[condition].op != Op::CmpLt) return std::nullopt;
  const std::vector<int64_t> shape = vjp.shape(condition);
  if (shape.size() != whole.size()) return std::nullopt;
  std::optional<size_t> axis;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (vjp.is_counted(vjp.y(), static_cast<int64_t>(i))) return std::nullopt;
    if (shape[i] == 1) continue;
    if (axis || shape[i] != whole[i]) return std::nullopt;
    axis = i;
  }
  if (!axis) return std::nullopt;
  Id counter = g[condition].src[0], end = g[condition].src[1];
  while (g[counter].op == Op::Reshape) counter = g[counter].src[0];
  while (is_movement(g[end].op) && g[end].op != Op::Pad) end = g[end].src[0];
  if (g[counter].op != Op::Iota || !is_const(g, end)) return std::nullopt;
  const int64_t count = const_int(g, end);
  if (static_cast<int64_t>(g[counter].arg) != whole[*axis] || count <= 0 || count >= whole[*axis])
    return std::nullopt;
  return Prefix{*axis, count};
}

Id flow_within(Vjp& vjp, size_t axis, int64_t begin, int64_t end) {
  std::vector<int64_t> shape = vjp.shape(vjp.y()), box, pads(2 * shape.size(), 0);
  for (int64_t size : shape) box.insert(box.end(), {0, size});
  pads[2 * axis] = begin;
  pads[2 * axis + 1] = shape[axis] - end;
  box[2 * axis] = begin;
  box[2 * axis + 1] = end;
  shape[axis] = end - begin;
  const bool is_one_number = vjp.shape(vjp.g()).empty();
  const Id part = is_one_number ? vjp.spread(vjp.g(), shape) : cut(vjp, vjp.g(), box);
  return vjp.move(Op::Pad, part, pads);
}

std::optional<size_t> padded_axis(const Graph& graph, Id id) {
  if (graph[id].op != Op::Pad) return std::nullopt;
  const auto pads = graph.arg_list(id);
  std::optional<size_t> axis;
  for (size_t i = 0; i < pads.size(); ++i) {
    if (pads[i] == 0) continue;
    if (pads[i] < 0 || (axis && *axis != i / 2)) return std::nullopt;
    axis = i / 2;
  }
  return axis;
}

Id sum_of_parts(Context& context, const std::vector<Id>& pads) {
  Graph& g = context.graph;
  Id sum = kNoId;
  const auto add = [&](Id value) { sum = sum == kNoId ? value : g.binary(Op::Add, sum, value); };
  std::map<size_t, std::vector<Part>> by_axis;
  for (Id pad : pads) {
    const size_t axis = *padded_axis(g, pad);
    const int64_t begin = g.arg_list(pad)[2 * axis];
    by_axis[axis].push_back({begin, begin + context.shapes[g[pad].src[0]][axis], pad});
  }
  for (const auto& [axis, parts] : by_axis) {
    if (parts.size() <= kFewParts) {
      for (const Part& part : parts) add(part.pad);
      continue;
    }
    for (const auto& layer : layers_of(parts)) {
      if (layer.size() > kFewParts)
        add(join(context, layer, axis));
      else
        for (const Part& part : layer) add(part.pad);
    }
  }
  return sum;
}

}  // namespace plugrad::autodiff
