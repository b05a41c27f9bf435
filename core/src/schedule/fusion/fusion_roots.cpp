// Chooses the fusion root of each Reduce: the last value that it can be fused with, which is
// stored. The value of a Reduce flows through elementwise ops and views that read each element
// once, because they can run in its loops:
//   matmul -> + bias -> relu -> [store]       sum -> * 1/n -> [store] -> expand …
// The flow ends at a view that repeats elements, at a wide frame of padding (the loops of the Reduce
// would run for its elements, too), where paths part and do not meet again, and at most other Reduces.
#include <algorithm>
#include <functional>

#include "schedule/fusion/cost.h"
#include "schedule/fusion/store_cost.h"

namespace plugrad::schedule {
namespace {

// nodes, at once and in all, for paths that part and may meet
constexpr size_t kMostPartedNodes = 64;
constexpr int64_t kEnoughOutputs =
    1024;  // outputs of a sum into which the loops of a convolution may nest
constexpr int64_t kLargeWork = 32768;

class FusionRoots {
 public:
  explicit FusionRoots(SchedulerState& state)
      : state_(state),
        g_(state.graph),
        largest_leaf_(state.graph.size(), 0),
        carries_(state.graph.size(), 0),
        end_of_(state.graph.size(), kNoId) {}

  void run() {
    for (Id id : state_.live) {
      int64_t leaf = 0;
      for (Id s : g_.sources(id))
        leaf = std::max(leaf, state_.stored[s] != 0 ? state_.counts[s] : largest_leaf_[s]);
      // Of a stored value, only the part that is cut out is read.
      const bool is_cut = g_[id].op == Op::Shrink || g_[id].op == Op::Window;
      largest_leaf_[id] = is_cut ? std::min(leaf, state_.counts[id]) : leaf;
      if (g_[id].op != Op::Reduce || state_.indexed[id] != 0) continue;
      const int64_t reads = state_.counts[g_[id].src[0]];
      state_.like_matmul[id] = leaf != 0 && reads >= 2 * leaf;
      if (carries_[id] == 0)
        store_end_of_flow(id);  // otherwise the flow of an inner Reduce passed through
    }
  }

 private:
  void store_end_of_flow(Id reduce) {
    reduce_ = reduce;
    load_ = state_.like_matmul[reduce] != 0 ? 2 : 1;
    views_only_ = true;
    Id at = flow_from(reduce);
    // Trailing views only change how readers index the value: it is stored in the order of its
    // loops.
    while (is_movement(g_[at].op) && state_.stored[at] == 0 &&
           2 * state_.counts[at] > state_.counts[g_[at].src[0]])
      at = g_[at].src[0];
    // Elements beyond a variable size need no value then.
    while (is_mask(at) && state_.stored[at] == 0 && carries_[g_[at].src[1]] != 0)
      at = g_[at].src[1];
    state_.stored[at] = 1;
  }

  /// Follows the value of a Reduce. Light Reduces that meet continue together, unless another
  /// Reduce lies ahead: whether it can be joined depends on the Reduce that arrives.
  Id flow_from(Id reduce) {
    std::vector<Id> path;
    Id at = reduce;
    while (true) {
      ++state_.visits;
      if (load_ == 1 && end_of_[at] != kNoId) {
        at = end_of_[at];
        break;
      }
      path.push_back(at);
      carries_[at] = std::max(carries_[at], load_);
      if (state_.stored[at] != 0) break;
      const Id next = advance(at);
      if (next == kNoId || clashes(next)) break;
      views_only_ = views_only_ && (is_movement(g_[next].op) || g_[next].op == Op::Reduce);
      if (g_[next].op == Op::Reduce) reduce_ = next;
      at = next;
    }
    const bool is_read_by_reduce =
        std::ranges::any_of(state_.consumers.of(at), [&](Id c) { return g_[c].op == Op::Reduce; });
    for (size_t i = path.size(); load_ == 1 && !is_read_by_reduce && i-- > 0;) {
      if (g_[path[i]].op == Op::Reduce) break;
      end_of_[path[i]] = at;
    }
    return at;
  }

  bool is_mask(Id id) const { return std::ranges::binary_search(state_.masks, id); }

  /// Whether another Reduce flows through `next` and one of the two is a matmul, which is only fast
  /// alone.
  bool clashes(Id next) const { return carries_[next] != 0 && carries_[next] + load_ > 2; }

  /// The node into which the value at `at` can flow; kNoId for none.
  Id advance(Id at) const {
    const auto consumers = state_.consumers.of(at);
    if (consumers.empty()) return kNoId;
    const bool one = std::ranges::all_of(consumers, [&](Id c) { return c == consumers[0]; });
    if (!one) return meeting_point(at);
    const Id c = consumers[0];
    switch (g_[c].op) {
      case Op::Copy:
      case Op::UserKernel:
        return kNoId;
      case Op::Reduce:
        return nests_in(c) ? c : kNoId;
      case Op::Pad:
        return (load_ == 1 && is_thin_frame(state_, c)) || reaches_sum(c) ? c : kNoId;
      default:
        break;
    }
    if (is_plain_view(g_[c].op) || g_[c].op == Op::Contiguous) return c;
    if (state_.counts[c] != state_.counts[at]) return kNoId;
    return load_ == 1 || !meets_light_reduction(c, at) ? c : kNoId;
  }

  /// Whether another source of `node` is e.g. a pooling result: reading it in the loops of a matmul
  /// costs more than a kernel that reads both.
  bool meets_light_reduction(Id node, Id from) const {
    return std::ranges::any_of(g_.sources(node), [&](Id s) {
      return s != from && state_.stored[s] == 0 && !is_repeated(s) &&
             !light_reductions_below(state_, s).empty();
    });
  }

  /// Whether only views lie between `id` and a view that repeats elements. The Reduce below that is
  /// stored, possibly later: it may have a larger id than the matmul.
  bool is_repeated(Id id) const {
    for (; is_movement(g_[id].op); id = g_[id].src[0])
      if (g_[id].op == Op::Expand) return true;
    return false;
  }

  /// Whether the loops of the Reduce may nest in those of the Reduce `outer`.
  bool nests_in(Id outer) const {
    const int64_t work = state_.counts[g_[reduce_].src[0]], outputs = state_.counts[outer];
    const int64_t threads = state_.options.threads;
    if (threads > 1 && outputs < 4 * threads && work >= kLargeWork) return false;
    if (load_ == 1) return true;
    const auto is_sum = [&](Id r) { return static_cast<Op>(g_.arg_list(r)[0]) == Op::Add; };
    return views_only_ && is_sum(reduce_) && is_sum(outer) && outputs >= kEnoughOutputs;
  }

  /// Whether only views lie between `view` and a sum that the Reduce nests in, as in the gradient
  /// of a convolution.
  bool reaches_sum(Id view) const {
    while (is_plain_view(g_[view].op) || g_[view].op == Op::Pad) {
      const auto consumers = state_.consumers.of(view);
      if (consumers.size() != 1 || state_.stored[view] != 0) return false;
      view = consumers[0];
    }
    return g_[view].op == Op::Reduce && nests_in(view);
  }

  /// The elementwise op in which all paths from `at` meet again, if only elementwise ops lie on
  /// them.
  Id meeting_point(Id at) const {
    std::vector<Id> front;  // a heap with the earliest node on top
    const auto add_consumers = [&](Id id) {
      for (Id c : state_.consumers.of(id)) {
        state_.visits += front.size();
        if (std::ranges::find(front, c) != front.end()) continue;
        if (front.size() == kMostPartedNodes) return false;
        front.push_back(c);
        std::ranges::push_heap(front, std::greater<>());
      }
      return true;
    };
    if (!add_consumers(at)) return kNoId;
    for (size_t looked_at = 0; looked_at < kMostPartedNodes; ++looked_at) {
      const Id first = front.front();
      if (!is_alu(g_[first].op) || state_.counts[first] != state_.counts[at]) return kNoId;
      if (front.size() == 1) return first;
      if (state_.stored[first] != 0) return kNoId;
      std::ranges::pop_heap(front, std::greater<>());
      front.pop_back();
      if (!add_consumers(first)) return kNoId;
    }
    return kNoId;
  }

  SchedulerState& state_;
  const Graph& g_;
  std::vector<int64_t> largest_leaf_;  // elements of the largest stored value below
  std::vector<uint8_t>
      carries_;             // by node with a Reduce flowing through: 1, or 2 for one like a matmul
  std::vector<Id> end_of_;  // by node with a light Reduce flowing through, after other Reduces
  Id reduce_ = kNoId;       // the Reduce that flows
  uint8_t load_ = 1;        // its contribution to carries_
  bool views_only_ = true;  // on its path so far
};

}  // namespace

void choose_fusion_roots(SchedulerState& state) {
  FusionRoots(state).run();
}

}  // namespace plugrad::schedule
