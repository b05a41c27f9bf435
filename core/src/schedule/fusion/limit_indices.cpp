// Stores values that one kernel would compute at too many indices. A value that its readers see
// through different views is computed at different indices: for each term of a stencil, twice in each
// iteration of a recurrence x[1:] = f(x[:-1]), 2^n times after n iterations.
#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <tuple>

#include "schedule/fusion/cost.h"
#include "schedule/fusion/store_cost.h"
#include "schedule/lower/lower_kernel.h"

namespace plugrad::schedule {
namespace {

// Indices at which one kernel may compute a value. Bounds the walk to near linear time, and the
// length of a kernel to a multiple of the graph's.
constexpr size_t kMostIndices = 32;
constexpr double kOfALaunch = 4096;  // operations in the time of one more launch
constexpr int64_t kFewNumbers = 16;  // elements

/// How many indices are few enough: the work at the others hides behind the memory that the kernel
/// moves, or is less than a launch of its own.
class Allowance {
 public:
  explicit Allowance(const SchedulerState& state)
      : state_(state), regions_(state), cost_(state), most_(state.graph.size(), 0) {}

  void begin(Id output) {
    output_ = output;
    hidden_ = 0;
    for (const Id id : asked_) most_[id] = 0;
    asked_.clear();
  }
  bool allows(Id node, size_t indices) {
    if (indices <= 1 || indices > kMostIndices) return indices <= 1;
    const auto elements = static_cast<double>(state_.computed[node]);
    const double at_most = RegionFinder::kTooHeavy * static_cast<double>(indices) * elements;
    if (!is_alu(state_.graph[node].op) || at_most <= kOfALaunch) return true;
    if (most_[node] == 0) {
      most_[node] = find_most(node);
      asked_.push_back(node);
    }
    return indices <= most_[node];
  }

 private:
  size_t find_most(Id node) {
    if (hidden_ == 0) hidden_ = hidden_operations();
    const Region region = regions_.below(node);
    // Of positions and numbers, such as the key of random numbers: loops compute parts of it, and
    // indices that differ may share most of the work.
    if (region.largest_leaf <= kFewNumbers) return kMostIndices;
    const double each = region.weight * static_cast<double>(state_.computed[node]);
    return each * kMostIndices <= hidden_ ? kMostIndices : 1 + static_cast<size_t>(hidden_ / each);
  }

  /// No limit for a kernel of rows, which keeps what it reads of a row again.
  double hidden_operations() {
    const auto is_leaf = [&](Id id) { return id != output_ && state_.stored[id] != 0; };
    const auto& nodes = state_.reachable.from(state_.graph, std::span(&output_, 1), is_leaf);
    state_.visits += nodes.size();
    const auto is_of_row = [&](Id id) { return (state_.of_rows[id] | state_.in_blocks[id]) != 0; };
    if (std::ranges::any_of(nodes, is_of_row)) return std::numeric_limits<double>::infinity();
    return std::max(kOfALaunch,
                    cost_.bytes_moved_by(output_) / state_.options.machine.bytes_an_operation());
  }

  const SchedulerState& state_;
  RegionFinder regions_;
  StoreCost cost_;
  std::vector<size_t> most_;  // by node; 0: not asked for this output
  std::vector<Id> asked_;
  Id output_ = kNoId;
  double hidden_ = 0;  // operations; 0: not found yet
};

/// Numbers the paths of views from a kernel's output down to each of its nodes: an upper bound of
/// the indices.
class Ways {
 public:
  explicit Ways(SchedulerState& state) : state_(state), g_(state.graph), of_(state.graph.size()) {}

  /// Whether more paths than are allowed lead to a node of the kernel of `output`.
  bool are_many(Id output, Allowance& allowance) {
    bool many = false;
    numbers_.clear();
    add(output, 0);
    while (!waiting_.empty()) {
      const Id node = waiting_.top();
      waiting_.pop();
      const std::vector<uint32_t> ways = std::move(of_[node]);
      of_[node].clear();
      state_.visits += ways.size();
      const bool is_leaf = node != output && state_.stored[node] != 0;
      many = many || (!is_leaf && !allowance.allows(node, ways.size()));
      if (many || is_leaf) continue;
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
  Allowance allowance(state);
  KernelLowering lowering(state);
  for (size_t i = state.live.size(); i-- > 0;) {
    const Id id = state.live[i];
    const Op op = state.graph[id].op;
    if (state.stored[id] == 0 || op == Op::Buffer || op == Op::Copy || op == Op::Collective ||
        op == Op::UserKernel)
      continue;
    allowance.begin(id);
    if (!ways.are_many(id, allowance)) continue;
    const auto allows = [&](Id node, size_t indices) { return allowance.allows(node, indices); };
    for (Id repeated : lowering.computed_too_often(id, allows)) {
      state.stored[repeated] = 1;
      stored_any = true;
    }
  }
  return stored_any;
}

}  // namespace plugrad::schedule
