// Stores values that one kernel would compute at too many indices. A value that its readers see
// through different views is computed at different indices: twice in each iteration of a recurrence
// x[1:] = f(x[:-1]), 2^n times after n iterations.
#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

#include "schedule/fusion/cost.h"
#include "schedule/lower/lower_kernel.h"

namespace plugrad::schedule {
namespace {

// Indices at which one kernel may compute a value. Bounds the walk to near linear time, and the
// length of a kernel to a multiple of the graph's.
constexpr size_t kMostIndices = 32;

/// Numbers the paths of views from a kernel's output down to each of its nodes: an upper bound of
/// the indices.
class Ways {
 public:
  explicit Ways(SchedulerState& state) : state_(state), g_(state.graph), of_(state.graph.size()) {}

  /// Whether more than kMostIndices paths lead to a node of the kernel of `output`.
  bool are_many(Id output) {
    bool many = false;
    numbers_.clear();
    add(output, 0);
    while (!waiting_.empty()) {
      const Id node = waiting_.top();
      waiting_.pop();
      const std::vector<uint32_t> ways = std::move(of_[node]);
      of_[node].clear();
      state_.visits += ways.size();
      many = many || ways.size() > kMostIndices;
      if (many || (node != output && state_.stored[node] != 0)) continue;
      for (Id s : g_.sources(node))
        for (uint32_t way : ways) add(s, through(node, s, way));
    }
    return many;
  }

 private:
  void add(Id node, uint32_t way) {
    std::vector<uint32_t>& ways = of_[node];
    if (ways.empty()) waiting_.push(node);
    if (std::ranges::find(ways, way) == ways.end()) ways.push_back(way);
  }

  uint32_t through(Id node, Id source, uint32_t way) {
    const Node& n = g_[node];
    if (state_.shapes[source].empty()) return 0;
    if (!is_movement(n.op) && n.op != Op::Reduce) return way;
    const auto key = std::tuple(way, n.op, n.arg, state_.shapes.id(source));
    return numbers_.try_emplace(key, static_cast<uint32_t>(numbers_.size() + 1)).first->second;
  }

  SchedulerState& state_;
  const Graph& g_;
  std::vector<std::vector<uint32_t>> of_;  // by node, while it is queued
  std::priority_queue<Id> waiting_;        // consumers first
  std::map<std::tuple<uint32_t, Op, uint64_t, ListId>, uint32_t> numbers_;
};

}  // namespace

bool limit_indices(SchedulerState& state) {
  bool stored_any = false;
  Ways ways(state);
  KernelLowering lowering(state);
  for (size_t i = state.live.size(); i-- > 0;) {
    const Id id = state.live[i];
    const Op op = state.graph[id].op;
    if (state.stored[id] == 0 || op == Op::Buffer || op == Op::Copy || op == Op::Collective ||
        op == Op::UserKernel)
      continue;
    if (!ways.are_many(id)) continue;
    for (Id repeated : lowering.computed_too_often(id, kMostIndices)) {
      state.stored[repeated] = 1;
      stored_any = true;
    }
  }
  return stored_any;
}

}  // namespace plugrad::schedule
