// Stores an expression that a long kernel computes for hundreds of values, so that one kernel,
// compiled once, is launched for each. The long kernel would take long to compile.
//   before   store(f(a) + f(b) + f(c) + …)
//   after    store(f(a)), store(f(b)), …, store(f_a + f_b + f_c + …)
#include <algorithm>
#include <unordered_map>

#include "schedule/fusion/cost.h"
#include "schedule/fusion/store_cost.h"

namespace plugrad::schedule {
namespace {

// Operations; kernels up to this length compile in some tenths of a second.
constexpr size_t kLongKernel = 4000;
// Expressions, and operations of each, below which a kernel is not long.
constexpr uint32_t kManyBlocks = 16;
constexpr uint32_t kShortBlock = 16;
// Bytes; results of all expressions up to this size stay in a cache between two kernels.
constexpr int64_t kFewBytes = 65536;

class Blocks {
 public:
  explicit Blocks(SchedulerState& state)
      : state_(state), g_(state.graph), regions_(state), signatures_(state.graph.size(), 0) {}

  bool run() {
    bool stored_any = false;
    for (Id id : state_.live) {
      const Op op = g_[id].op;
      if (state_.stored[id] != 0 && (is_alu(op) || op == Op::Contiguous || op == Op::Reduce))
        stored_any = store_in(id) || stored_any;
    }
    return stored_any;
  }

 private:
  bool store_in(Id root) {
    const auto is_read = [&](Id id) { return id != root && state_.stored[id] != 0; };
    const std::vector<Id> nodes = reachable_.from(g_, std::span(&root, 1), is_read);
    state_.visits += nodes.size();
    const auto operations = std::ranges::count_if(nodes, [&](Id id) { return is_alu(g_[id].op); });
    if (static_cast<size_t>(operations) <= kLongKernel) return false;
    find_tops(nodes, root);
    bool stored_any = false;
    for (const auto& [signature, tops] : tops_)
      if (pays(tops, root)) {
        for (Id top : tops) state_.stored[top] = 1;
        stored_any = true;
      }
    return stored_any;
  }

  /// Finds the largest repeated expressions, by signature.
  void find_tops(const std::vector<Id>& nodes, Id root) {
    count_.clear();
    tops_.clear();
    for (Id id : nodes) ++count_[signatures_[id] = signature(id, root)];
    const auto is_repeated = [&](Id id) {
      const auto found = count_.find(signatures_[id]);
      return found != count_.end() && found->second >= kManyBlocks;
    };
    for (Id id : nodes) {
      if (!is_repeated(id) || std::ranges::any_of(state_.consumers.of(id), is_repeated)) continue;
      Id top = id;
      while (is_movement(g_[top].op)) top = g_[top].src[0];
      if (is_alu(g_[top].op) && state_.stored[top] == 0) tops_[signatures_[top]].push_back(top);
    }
  }

  uint64_t signature(Id id, Id root) const {
    const Node& n = g_[id];
    const bool is_read = id != root && state_.stored[id] != 0;
    uint64_t hash = mixed(static_cast<uint64_t>(is_read ? Op::Buffer : n.op), state_.shapes.id(id));
    hash = mixed(hash, static_cast<uint64_t>(n.dtype));
    if (is_read) return hash;
    hash = mixed(hash, n.arg);
    for (Id s : g_.sources(n)) hash = mixed(hash, signatures_[s]);
    return hash;
  }

  bool pays(const std::vector<Id>& tops, Id root) {
    if (tops.size() < kManyBlocks || regions_.below(tops[0]).weight < kShortBlock) return false;
    const auto bytes = [&](Id id) {
      return state_.counts[id] * static_cast<int64_t>(size_of(g_[id].dtype));
    };
    return static_cast<int64_t>(tops.size()) * bytes(tops[0]) <= std::max(kFewBytes, bytes(root));
  }

  SchedulerState& state_;
  const Graph& g_;
  RegionFinder regions_;
  Reachable reachable_;
  std::vector<uint64_t> signatures_;  // by node, for the current kernel
  std::unordered_map<uint64_t, uint32_t> count_;
  std::map<uint64_t, std::vector<Id>> tops_;
};

}  // namespace

bool store_repeated_blocks(SchedulerState& state) {
  return Blocks(state).run();
}

}  // namespace plugrad::schedule
