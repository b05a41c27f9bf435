#include "schedule/layout/access_patterns.h"

#include <algorithm>
#include <bit>
#include <numeric>

namespace plugrad::schedule {
namespace {

constexpr size_t kMostLoops = 8 * sizeof(LoopSet);
using Axes = std::vector<AxisIndex>;

class Walk {
 public:
  Walk(SchedulerState& state, LoopNest& nest) : state_(state), g_(state.graph), nest_(nest) {}

  void run() {
    const auto sizes = shape(nest_.output);
    Axes axes;
    for (uint32_t i = 0; i < sizes.size(); ++i) axes.push_back(loop(nest_.output, i, sizes[i]));
    around_ = nest_.loops.size() >= kMostLoops ? 0 : (LoopSet{1} << nest_.loops.size()) - 1;
    nest_.bodies.push_back(around_);
    stack_.push_back({nest_.output, axes, around_, kNoId, {}});
    while (!stack_.empty()) {
      const Visit at = std::move(stack_.back());
      stack_.pop_back();
      visit(at);
    }
    if (nest_.loops.size() > kMostLoops) nest_.accesses.clear();
  }

 private:
  struct Visit {
    Id node;
    Axes axes;
    LoopSet around;
    Id view;  // highest node above it with only casts and views of all elements in between
    Axes view_axes;
    Id cast_copy = kNoId;  // a cast of a half type with only views below
    Axes cast_copy_axes = {};
  };

  std::span<const int64_t> shape(Id node) { return state_.shapes[node]; }

  AxisIndex loop(Id owner, uint32_t axis, int64_t size) {
    if (size == 1) return {};
    const size_t number = nest_.loops.size();
    nest_.loops.push_back({owner, axis, size, owner != nest_.output || reducing_});
    if (number >= kMostLoops) return {};
    return {LoopSet{1} << number, true, LoopSet{1} << number};
  }

  void visit(const Visit& at) {
    ++state_.visits;
    const Node& n = g_[at.node];
    const bool leaf = at.node != nest_.output && state_.stored[at.node] != 0;
    if (leaf) {
      nest_.accesses.push_back({at.node, at.view == kNoId ? at.node : at.view, at.axes,
                                at.view == kNoId ? at.axes : at.view_axes, at.around,
                                state_.counts[at.node], at.cast_copy, at.cast_copy_axes,
                                state_.constant[at.view == kNoId ? at.node : at.view] != 0});
      return;
    }
    for (Id s : g_.sources(n)) {
      Visit below{s, at.axes, at.around, kNoId, {}};
      if (shape(s).empty()) below.axes.clear();
      if (is_movement(n.op)) enter_movement(at, below);
      if (n.op == Op::Cast) enter_cast(at, below);
      if (n.op == Op::Reduce) enter_reduce(at, below);
      if (is_new(below)) stack_.push_back(std::move(below));
    }
  }

  void enter_movement(const Visit& at, Visit& below) {
    const Op op = g_[at.node].op;
    const auto list = g_.arg_list(at.node);
    const auto from = shape(below.node);
    if (op == Op::Permute)
      for (size_t i = 0; i < list.size(); ++i)
        below.axes[static_cast<size_t>(list[i])] = at.axes[i];
    if (op == Op::Reshape) below.axes = reshaped(at.axes, shape(at.node), from);
    if (op == Op::Expand)
      for (size_t i = 0; i < from.size(); ++i)
        if (from[i] == 1) below.axes[i] = {};
    const auto moved = [&](size_t i) {
      if (op == Op::Flip) return list[i] != 0;
      if (op == Op::Window) return list[0] == static_cast<int64_t>(i);
      return list[2 * i] != 0 || from[i] != shape(at.node)[i];
    };
    if (op == Op::Flip || op == Op::Pad || op == Op::Shrink || op == Op::Window)
      for (size_t i = 0; i < from.size(); ++i)
        if (moved(i)) below.axes[i].plain = false;
    if (state_.counts[at.node] == state_.counts[below.node]) continue_view(at, below);
  }

  /// A cast counts as a view: a copy stores the cast values.
  void enter_cast(const Visit& at, Visit& below) const {
    continue_view(at, below);
    const DType from = g_[below.node].dtype, to = g_[at.node].dtype;
    if (is_float(from) && is_float(to) && size_of(from) == 2 && size_of(to) > 2) {
      below.cast_copy = at.node;
      below.cast_copy_axes = at.axes;
    }
  }

  static void continue_view(const Visit& at, Visit& below) {
    below.view = at.view == kNoId ? at.node : at.view;
    below.view_axes = at.view == kNoId ? at.axes : at.view_axes;
    below.cast_copy = at.cast_copy;
    below.cast_copy_axes = at.cast_copy_axes;
  }

  /// The last axis before `end` that is longer than 1.
  static size_t last_long(std::span<const int64_t> sizes, size_t end) {
    do --end;
    while (sizes[end] == 1);
    return end;
  }

  bool is_of_sum(LoopSet loop) const {
    return loop != 0 && nest_.loops[static_cast<size_t>(std::countr_zero(loop))].reduces;
  }

  /// An axis that the reshape keeps keeps its loop; of split or merged axes only the set of loops
  /// is known. A loop over merged axes has stride 1 along the last of them. Codegen splits the loop
  /// of a sum, so that any of its axes may be the inner one.
  Axes reshaped(const Axes& axes, std::span<const int64_t> to,
                std::span<const int64_t> from) const {
    Axes out(from.size());
    each_reshape_group(to, from, [&](size_t i, size_t i_end, size_t j, size_t j_end) {
      while (i < i_end && to[i] == 1) ++i;
      while (j < j_end && from[j] == 1) ++j;
      if (i == i_end || j == j_end) return;
      const size_t last = last_long(to, i_end);
      if (i == last && j == last_long(from, j_end)) {
        out[j] = axes[i];
        return;
      }
      LoopSet all = 0;
      for (size_t k = i; k < i_end; ++k) all |= axes[k].loops;
      for (size_t k = j; k < j_end; ++k) out[k].loops = from[k] == 1 ? 0 : all;
      const int64_t most = is_of_sum(axes[last].near) ? to[last] : 2;
      int64_t inside = 1;
      for (size_t k = j_end; k-- > j && inside < most; inside *= from[k])
        out[k].near = from[k] == 1 ? 0 : axes[last].near;
    });
    return out;
  }

  /// A Reduce is evaluated once for all iterations of a loop on which none of its terms depends: a
  /// row's maximum is the same for all elements of the row, and for the sum over it.
  void enter_reduce(const Visit& at, Visit& below) {
    const auto list = g_.arg_list(at.node);
    const auto from = shape(below.node);
    below.around = 0;
    for (const AxisIndex& a : at.axes) below.around |= a.loops;
    const auto [known, is_new] = loops_of_.try_emplace({at.node, below.around});
    Axes& made = known->second;
    if (is_new) {
      reducing_ = true;
      for (int64_t axis : list.subspan(1))
        made.push_back(loop(at.node, static_cast<uint32_t>(axis), from[static_cast<size_t>(axis)]));
      reducing_ = false;
    }
    for (size_t i = 1; i < list.size(); ++i) {
      below.axes[static_cast<size_t>(list[i])] = made[i - 1];
      below.around |= made[i - 1].loops;
    }
    if (is_new) nest_.bodies.push_back(below.around);
  }

  /// Visits differ in the node and its access pattern.
  bool is_new(const Visit& p) {
    std::vector<uint64_t> key = {p.node, p.around, p.view};
    for (const AxisIndex& a : p.axes) key.push_back(a.loops * 2 + (a.plain ? 1 : 0));
    return seen_.insert(std::move(key)).second;
  }

  SchedulerState& state_;
  const Graph& g_;
  LoopNest& nest_;
  LoopSet around_ = 0;
  bool reducing_ = false;
  std::vector<Visit> stack_;
  std::set<std::vector<uint64_t>> seen_;
  std::map<std::pair<Id, LoopSet>, Axes> loops_of_;
};

}  // namespace

LoopNest loop_nest(SchedulerState& state, Id output) {
  LoopNest nest{output, {}, {}, {}};
  Walk(state, nest).run();
  return nest;
}

Dims cast_copy_order(const Access& access, const std::map<Id, Dims>& orders) {
  Dims memory(access.axes.size()), order(access.cast_copy_axes.size());
  std::iota(memory.begin(), memory.end(), 0);
  std::iota(order.begin(), order.end(), 0);
  if (const auto known = orders.find(access.node); known != orders.end()) memory = known->second;
  std::ranges::stable_sort(order, {}, [&](int64_t axis) -> int64_t {
    const LoopSet loops = access.cast_copy_axes[static_cast<size_t>(axis)].loops;
    if (loops == 0) return -1;
    const auto same = [&](int64_t own) {
      return access.axes[static_cast<size_t>(own)].loops == loops;
    };
    return std::ranges::find_if(memory, same) - memory.begin();
  });
  return order;
}

}  // namespace plugrad::schedule
