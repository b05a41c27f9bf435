#include "ir/extents.h"

#include <algorithm>
#include <limits>

namespace plugrad {

using Kind = Extent::Kind;

const std::vector<Extent>& Extents::operator[](Id node) {
  while (by_id_.size() <= node) {
    const Id next = static_cast<Id>(by_id_.size());
    shapes_.id(next);
    List list = compute(next);
    by_id_.push_back(keep(next, std::move(list)));
  }
  return lists_[by_id_[node]];
}

bool Extents::is_counted(Id node) {
  return std::ranges::any_of((*this)[node], &Extent::is_counted);
}

// Most nodes have the extents of a source: those share its list.
uint32_t Extents::keep(Id node, List list) {
  for (Id s : graph_.sources(node))
    if (lists_[by_id_[s]] == list) return by_id_[s];
  lists_.push_back(std::move(list));
  return static_cast<uint32_t>(lists_.size() - 1);
}

Extents::List Extents::compute(Id node) {
  const Node& n = graph_[node];
  const auto first = [&] { return lists_[by_id_[graph_.sources(node)[0]]]; };
  switch (n.op) {
    case Op::Buffer:
      return List(shapes_[node].size());
    case Op::Iota:
      return {{.kind = Kind::Free}};
    case Op::Function:
      return first();
    case Op::Reshape:
      return reshaped(node);
    case Op::Expand:
    case Op::Pad:
    case Op::Shrink:
    case Op::Flip:
      return resized(node);
    case Op::Copy:
      return copied(node);
    case Op::Permute: {
      const List from = first();
      List to;
      for (int64_t axis : graph_.arg_list(node)) to.push_back(from[static_cast<size_t>(axis)]);
      return to;
    }
    case Op::Reduce: {
      List list = first();
      for (int64_t axis : graph_.arg_list(node).subspan(1)) list[static_cast<size_t>(axis)] = {};
      return list;
    }
    case Op::Bounded: {
      List list = first();
      const auto arg = graph_.arg_list(node);
      const auto axis = static_cast<size_t>(arg[0]);
      // A count of at least the whole size is the whole size.
      const bool is_whole = arg[1] == shapes_[node][axis];
      list[axis] = is_whole ? Extent{} : Extent{Kind::Counted, graph_.sources(node)[1], arg[1]};
      return list;
    }
    case Op::Window: {  // lies within the elements there are
      List list = first();
      list[static_cast<size_t>(graph_.arg_list(node)[0])] = {};
      return list;
    }
    case Op::UserKernel: {
      List list(shapes_[node].size());
      const auto counted = [&](Id s) {
        return std::ranges::any_of(lists_[by_id_[s]], &Extent::is_counted);
      };
      if (!list.empty() && std::ranges::any_of(graph_.sources(node), counted))
        list[0].kind = Kind::Opaque;
      return list;
    }
    default:
      return elementwise(node);
  }
}

Extents::List Extents::elementwise(Id node) {
  const size_t rank = shapes_[node].size();
  List result(rank, {.kind = Kind::Free});
  for (Id s : graph_.sources(node)) {
    if (shapes_[s].empty()) continue;
    const List& from = lists_[by_id_[s]];
    for (size_t i = 0; i < rank; ++i) {
      Extent& to = result[i];
      if (from[i].kind == Kind::Free || to.is_undecided()) continue;
      if (to.kind == Kind::Free || from[i].is_undecided())
        to = from[i];
      else if (to.kind != from[i].kind || to.count != from[i].count)
        to = {.kind = Kind::Different};
      else
        to.least = std::min(to.least, from[i].least);
    }
  }
  return result;
}

// An axis is unchanged if it has the same size and the same number of elements before it.
Extents::List Extents::reshaped(Id node) {
  const Id source = graph_.sources(node)[0];
  const List from = lists_[by_id_[source]];
  const auto old_shape = shapes_[source], shape = shapes_[node];
  const bool all_free =
      std::ranges::all_of(from, [](const Extent& e) { return e.kind == Kind::Free; });
  List to(shape.size(), {.kind = all_free ? Kind::Free : Kind::Whole});
  int64_t before = 1;
  for (size_t i = 0; i < from.size(); before *= old_shape[i++]) {
    if (from[i].kind == Kind::Whole || old_shape[i] == 1) continue;
    int64_t at_before = 1;
    size_t at = 0;
    while (at < shape.size() && (at_before != before || shape[at] == 1)) at_before *= shape[at++];
    if (at < shape.size() && shape[at] == old_shape[i])
      to[at] = from[i];
    else if (from[i].is_counted() && at < shape.size())
      to[at] = rescaled(from[i], old_shape[i], shape[at]);
    else if (from[i].kind != Kind::Free && !to.empty())
      to[0] = {.kind = Kind::Merged};
  }
  return to;
}

// The extent of an axis that a reshape merged with the axes behind it, or split again: it counts
// whole rows.
Extent Extents::rescaled(const Extent& e, int64_t size, int64_t to) {
  if (to > size && to % size == 0)
    return {Kind::Counted, graph_.binary(Op::Mul, e.count, graph_.constant(DType::I32, to / size)),
            e.least * (to / size)};
  const Node& n = graph_[e.count];
  const bool is_product = n.op == Op::Mul && is_const(graph_, n.src[1]);
  if (!is_product || to == 0 || size % to != 0) return {.kind = Kind::Merged};
  const int64_t by = size / to, taken = const_int(graph_, n.src[1]);
  if (taken % by != 0) return {.kind = Kind::Merged};
  const Id count = taken == by
                       ? n.src[0]
                       : graph_.binary(Op::Mul, n.src[0], graph_.constant(DType::I32, taken / by));
  return {Kind::Counted, count, e.least / by};
}

Extents::List Extents::resized(Id node) {
  const Id source = graph_.sources(node)[0];
  const auto from = shapes_[source], to = shapes_[node], list = graph_.arg_list(node);
  List result = lists_[by_id_[source]];
  for (size_t i = 0; i < result.size(); ++i) {
    Extent& e = result[i];
    switch (graph_[node].op) {
      case Op::Expand:
        if (from[i] != to[i]) e = {.kind = Kind::Free};
        break;
      case Op::Pad:
        e = padded(e, list[2 * i], list[2 * i + 1]);
        break;
      case Op::Shrink:
        e = shrunk(e, from[i], list[2 * i], list[2 * i + 1]);
        break;
      default:
        if (list[i] != 0 && e.is_counted()) e = {.kind = Kind::Reversed};
        break;
    }
  }
  return result;
}

Extent Extents::padded(const Extent& e, int64_t before, int64_t after) {
  if (before == 0 && after == 0) return e;
  if (e.kind == Kind::Free) return {};
  if (!e.is_counted()) return e;
  return {Kind::Counted, plus(e.count, before + after), e.least + before + after};
}

Extent Extents::shrunk(const Extent& e, int64_t size, int64_t begin, int64_t end) {
  if (!e.is_counted() || (begin == 0 && end == size)) return e;
  if (end <= e.least) return {};
  if (end != size || begin > e.least) return {.kind = Kind::Cut};
  return {Kind::Counted, plus(e.count, -begin), e.least - begin};
}

// The count is copied to the device of the tensor.
Extents::List Extents::copied(Id node) {
  List list = lists_[by_id_[graph_.sources(node)[0]]];
  for (Extent& e : list)
    if (e.is_counted()) e.count = graph_.add(Op::Copy, DType::I32, {e.count}, graph_[node].arg);
  return list;
}

Id Extents::plus(Id count, int64_t number) {
  return graph_.binary(Op::Add, count, graph_.constant(DType::I32, number));
}

Id BoundedGraph::bound(Id x, int64_t axis, Id count, int64_t least) {
  const Extent& now = extents[x][static_cast<size_t>(axis)];
  if (now.is_counted() && now.count == count) return x;
  return graph.add(Op::Bounded, graph[x].dtype, {x, count}, graph.list({axis, least}));
}

Id BoundedGraph::like(Id x, Id model) {
  const std::vector<Extent> wanted = extents[model];
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i].is_counted())
      x = bound(x, static_cast<int64_t>(i), wanted[i].count, wanted[i].least);
  return x;
}

// A mask in the shape of x: whether the index along the axis lies within its extent.
Id BoundedGraph::inside(Id x, int64_t axis) {
  const auto at = static_cast<size_t>(axis);
  const auto sizes = shapes[x];
  const std::vector<int64_t> shape(sizes.begin(), sizes.end());
  std::vector<int64_t> along(shape.size(), 1);
  along[at] = shape[at];
  const Id indices = graph.add(Op::Iota, DType::I32, {}, static_cast<uint64_t>(shape[at]));
  Id is_inside = graph.binary(Op::CmpLt, indices, extents[x][at].count);
  if (shape.size() > 1)
    is_inside = graph.add(Op::Reshape, DType::Bool, {is_inside}, graph.list(along));
  if (along != shape)
    is_inside = graph.add(Op::Expand, DType::Bool, {is_inside}, graph.list(shape));
  return is_inside;
}

namespace {

Id nothing(Graph& g, DType dtype, Op op) {
  if (op != Op::Max || dtype == DType::Bool || is_unsigned(dtype))
    return g.constant(dtype, int64_t{op == Op::Mul});
  if (is_float(dtype)) return g.constant(dtype, -std::numeric_limits<double>::infinity());
  return g.constant(dtype, INT64_MIN >> (64 - 8 * static_cast<int>(size_of(dtype))));
}

}  // namespace

Id BoundedGraph::masked(Id x, std::span<const int64_t> axes, Op op) {
  for (int64_t axis : axes)
    if (extents[x][static_cast<size_t>(axis)].is_counted())
      x = graph.where(inside(x, axis), x, nothing(graph, graph[x].dtype, op));
  return x;
}

Id BoundedGraph::whole(Id x, int64_t axis, Id fill) {
  if (!extents[x][static_cast<size_t>(axis)].is_counted()) return x;
  const Id filled = graph.where(inside(x, axis), x, fill);
  const int64_t size = shapes[x][static_cast<size_t>(axis)];
  return graph.add(Op::Bounded, graph[x].dtype, {filled, graph.constant(DType::I32, size)},
                   graph.list({axis, size}));
}

}  // namespace plugrad
