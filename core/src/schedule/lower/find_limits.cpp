// Finds for axes of variable size (ir/extents.h) how many of their elements of each value are read.
// Simplification removed the Bounded nodes; their counts are kept here if a kernel can compute them
// before its loops begin: from numbers in memory, by sums, products and maxima.
#include <algorithm>

#include "ir/extents.h"
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

class Finder {
 public:
  Finder(SchedulerState& state, std::span<const Id> new_id) : state_(state), new_id_(new_id) {}

  void run() {
    Reachable reachable;
    const std::vector<Id> nodes = reachable.from(state_.source, state_.source_roots);
    const auto is_bounded = [&](Id id) { return state_.source[id].op == Op::Bounded; };
    if (std::ranges::none_of(nodes, is_bounded)) return;
    copy(nodes);
    find_used(nodes);
    find_seen(nodes);
    std::ranges::sort(state_.masks);
    for (Id id : nodes) add_limits(id);
    std::erase_if(state_.limits, [](const auto& entry) { return entry.second.empty(); });
  }

 private:
  // Extents add nodes, and the source is const.
  void copy(const std::vector<Id>& nodes) {
    copy_of_.assign(state_.source.size(), kNoId);
    std::vector<Id> sources;
    for (Id id : nodes) {
      sources.clear();
      for (Id s : state_.source.sources(id)) sources.push_back(copy_of_[s]);
      copy_of_[id] = copied_node(graph_, state_.source, id, sources);
      new_of_copy_.resize(graph_.size(), kNoId);
      new_of_copy_[copy_of_[id]] = new_id_[id];
    }
  }

  // Marks the nodes with a use other than a Bounded.
  void find_used(const std::vector<Id>& nodes) {
    used_.assign(state_.source.size(), 0);
    for (Id root : state_.source_roots) used_[root] = 1;
    for (Id id : nodes) {
      const auto sources = state_.source.sources(id);
      for (size_t i = 0; i < sources.size(); ++i)
        if (i > 0 || state_.source[id].op != Op::Bounded) used_[sources[i]] = 1;
    }
  }

  // Marks, as bits, the axes whose elements beyond the count are read: by a reduction along the
  // axis, or as padding, for which the graph put neutral values there. Memory must hold them.
  void find_seen(const std::vector<Id>& nodes) {
    seen_.assign(state_.source.size(), 0);
    // Such an output may be seen whole, as a gradient is, through a Bounded that is not in the graph.
    for (Id root : state_.source_roots)
      if (state_.source[root].op == Op::Where) seen_[root] = masked_axes(root);
    for (auto id = nodes.rbegin(); id != nodes.rend(); ++id) {
      const auto sources = state_.source.sources(*id);
      for (size_t i = 0; i < sources.size(); ++i)
        seen_[sources[i]] |= seen_through(*id, i) & counted(sources[i]);
    }
  }

  uint64_t counted(Id id) {
    const std::vector<Extent> extents = extents_[copy_of_[id]];
    uint64_t axes = 0;
    for (size_t axis = 0; axis < extents.size(); ++axis)
      if (extents[axis].is_counted()) axes |= uint64_t{1} << std::min<size_t>(axis, 63);
    return axes;
  }

  uint64_t seen_through(Id id, size_t source) {
    const Node& n = state_.source[id];
    const auto bit = [](int64_t axis) { return uint64_t{1} << std::min<int64_t>(axis, 63); };
    uint64_t seen = seen_[id];
    switch (n.op) {
      case Op::Reduce:
        for (int64_t axis : state_.source.arg_list(id).subspan(1)) seen |= bit(axis);
        return seen;
      case Op::Pad: {
        const auto pads = state_.source.arg_list(id);
        for (size_t i = 0; i + 1 < pads.size(); i += 2)
          if (pads[i] != 0 || pads[i + 1] != 0) seen |= bit(static_cast<int64_t>(i / 2));
        return seen;
      }
      case Op::Bounded: {  // one that makes an axis whole exposes the elements beyond
        const int64_t axis = state_.source.arg_list(id)[0];
        if (source == 0 && (counted(id) & bit(axis)) == 0) seen |= bit(axis);
        return source == 0 ? seen : 0;
      }
      case Op::Window:
        return source == 0 ? seen | bit(state_.source.arg_list(id)[0]) : 0;
      case Op::Where:
        return source == 1 ? seen & ~replaced_by(id, seen) : seen;
      case Op::Permute: {
        uint64_t from = 0;
        const auto order = state_.source.arg_list(id);
        for (size_t i = 0; i < order.size(); ++i)
          if ((seen & bit(static_cast<int64_t>(i))) != 0) from |= bit(order[i]);
        return from;
      }
      case Op::Reshape:
        return seen == 0 ? 0 : ~uint64_t{0};
      default:
        return seen;
    }
  }

  // Those of the `seen` axes whose elements beyond the count a Where replaces.
  uint64_t replaced_by(Id id, uint64_t seen) {
    const uint64_t axes = seen == 0 ? 0 : masked_axes(id);
    if (axes != 0 && state_.graph[new_id_[id]].op == Op::Where) state_.masks.push_back(new_id_[id]);
    return axes;
  }

  // The axes beyond whose counts a Where has other values.
  uint64_t masked_axes(Id id) {
    const auto sources = state_.source.sources(id);
    const Id value = copy_of_[sources[1]];
    const std::vector<Extent> extents = extents_[value];
    BoundedGraph bounded{graph_, shapes_, extents_};
    uint64_t axes = 0;
    for (size_t axis = 0; axis < std::min<size_t>(extents.size(), 63); ++axis) {
      const int64_t one[] = {static_cast<int64_t>(axis)};
      const Node masked = graph_[bounded.masked(value, one, Op::Add)];
      if (masked.op == Op::Where && masked.src[0] == copy_of_[sources[0]])
        axes |= uint64_t{1} << axis;
    }
    return axes;
  }

  // Several nodes may have become one: it keeps the limits that all of them have.
  void add_limits(Id id) {
    if (used_[id] == 0) return;
    std::vector<Limit> found;
    const std::vector<Extent> extents = extents_[copy_of_[id]];
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (!extents[axis].is_counted() || (seen_[id] >> std::min<size_t>(axis, 63) & 1) != 0)
        continue;
      if (const Id count = number(extents[axis].count); count != kNoId)
        found.push_back({axis, count});
    }
    const auto [at, is_first] = state_.limits.try_emplace(new_id_[id], found);
    if (!is_first)
      std::erase_if(at->second,
                    [&](const Limit& l) { return std::ranges::find(found, l) == found.end(); });
  }

  // The count as a node of the scheduler's graph; kNoId where a kernel or a copy computes it.
  Id number(Id copied) {
    const Node n = graph_[copied];
    if (n.op == Op::Const) return state_.graph.add(n.op, n.dtype, {}, n.arg);
    if (n.op == Op::Buffer) return new_of_copy_[copied];
    const bool is_view = n.op == Op::Bounded || n.op == Op::Detach || n.op == Op::Function;
    if (is_view) return number(n.src[0]);
    if (n.op != Op::Add && n.op != Op::Mul && n.op != Op::Max) return kNoId;
    const Id left = number(n.src[0]), right = number(n.src[1]);
    return left == kNoId || right == kNoId ? kNoId : state_.graph.binary(n.op, left, right);
  }

  SchedulerState& state_;
  const std::span<const Id> new_id_;
  Graph graph_;
  Shapes shapes_{graph_};
  Extents extents_{graph_, shapes_};
  std::vector<Id> copy_of_, new_of_copy_;
  std::vector<uint8_t> used_;
  std::vector<uint64_t> seen_;
};

}  // namespace

void find_limits(SchedulerState& state, std::span<const Id> new_id) {
  Finder(state, new_id).run();
}

std::vector<Id> leaves_of_count(const Graph& graph, Id count) {
  Reachable reachable;
  std::vector<Id> leaves;
  for (Id id : reachable.from(graph, std::span(&count, 1)))
    if (graph[id].op == Op::Buffer) leaves.push_back(id);
  return leaves;
}

}  // namespace plugrad::schedule
