// Stores values that kernels would compute many times: at the terms of a stencil, for every element
// of a window, for all parts of a value where one is chosen, in kernel after kernel.
//   before   store(sum over k < 9 of exp(x)[i + k])
//   after    store(exp(x)), store(sum over k < 9 of e[i + k])
#include <algorithm>

#include "schedule/fusion/cost.h"
#include "schedule/fusion/evaluations.h"

namespace plugrad::schedule {
namespace {

constexpr double kOfALaunch = 4096;  // operations in the time of one more launch
constexpr double kPasses = 3;        // over a stored value: a line is read before it is written
constexpr double kShare = 0.25;      // of a kernel's work that it may repeat

class EvaluationLimiter {
 public:
  explicit EvaluationLimiter(SchedulerState& state)
      : state_(state),
        g_(state.graph),
        evaluations_(state),
        claimed_(g_.size(), 0),
        below_(g_.size(), 0),
        readers_(g_.size(), 0),
        varies_(g_.size(), 0),
        mark_(g_.size(), 0) {}

  /// Consumers first: a value that is stored for one kernel is a kernel of its own later.
  bool run() {
    state_.plan.repeated = 0;
    for (size_t i = state_.live.size(); i-- > 0;)
      if (is_kernel(state_.live[i])) limit(state_.live[i]);
    return stored_any_;
  }

 private:
  bool is_kernel(Id id) const {
    const Op op = g_[id].op;
    return state_.stored[id] != 0 && op != Op::Buffer && op != Op::Copy && op != Op::Collective &&
           op != Op::UserKernel;
  }

  void limit(Id output) {
    while (true) {
      evaluations_.walk(output);
      if (store_crowded()) continue;
      weigh(output);
      const double hidden = evaluations_.bytes() / state_.options.machine.bytes_an_operation();
      const double more = excess_ - kShare * base_ - hidden;
      if (more > 0 && store_worst(output, more)) continue;
      if (more > 0) state_.plan.repeated += static_cast<int64_t>(std::min(more, 0x1p52));
      break;
    }
    for (const Id id : evaluations_.nodes())
      claimed_[id] = std::min(elements(id), claimed_[id] + evaluations_.of(id));
  }

  bool store_crowded() {
    bool any = false;
    for (const Id id : evaluations_.crowded())
      if (may_store(id)) any = store(id);
    return any;
  }

  /// Finds the kernel's work, and how much of it repeats work of its own or of kernels before it.
  void weigh(Id output) {
    const std::vector<Id>& nodes = evaluations_.nodes();
    for (const Id id : nodes) {
      readers_[id] = 0;
      below_[id] = 0;
    }
    for (const Id id : nodes)
      if (is_computed(id, output))
        for (const Id s : g_.sources(id)) ++readers_[s];
    base_ = excess_ = 0;
    for (const Id id : nodes) {
      varies_[id] = is_float(g_[id].dtype);
      if (!is_computed(id, output)) {
        varies_[id] = !is_number(g_, id);
        continue;
      }
      for (const Id s : g_.sources(id)) {
        varies_[id] |= varies_[s];
        below_[id] += below_[s] / readers_[s];
      }
      const double times = evaluations_.of(id), own = unclaimed(id);
      if (elements(id) == 0 || varies_[id] == 0) continue;
      const double each = state_.work[id] / elements(id);
      below_[id] += each * times;
      base_ += each * std::min(times, own);
      excess_ += each * std::max(0.0, times - own);
    }
  }

  /// Stores values that save most, as long as the kernel repeats `more` operations than it may.
  bool store_worst(Id output, double more) {
    std::vector<std::pair<double, Id>> found;
    for (const Id id : evaluations_.nodes()) {
      const double times = evaluations_.of(id);
      if (!is_computed(id, output) || times <= unclaimed(id) || !may_store(id)) continue;
      const double saves = below_[id] * (1 - unclaimed(id) / times) - cost_of_storing(id);
      if (saves > 0) found.emplace_back(saves, id);
    }
    std::ranges::sort(found, std::greater<>());
    ++epoch_;
    bool any = false;
    for (const auto& [saves, id] : found) {
      if (more <= 0) break;
      if (depends_on_chosen(id)) continue;
      any = store(id);
      more -= saves;
    }
    return any;
  }

  /// Whether a value that was chosen now is below this one or above it; marks what is below.
  bool depends_on_chosen(Id id) {
    if (mark_[id] == epoch_) return true;
    bool found = false;
    const auto stops = [&](Id at) {
      found = found || (mark_[at] == epoch_ && state_.stored[at] != 0 && evaluations_.of(at) > 0);
      return mark_[at] == epoch_ || state_.stored[at] != 0;
    };
    const std::vector<Id>& below = state_.reachable.from(g_, std::span(&id, 1), stops);
    state_.visits += below.size();
    for (const Id at : below) mark_[at] = epoch_;
    return found;
  }

  double cost_of_storing(Id id) const {
    const double bytes =
        static_cast<double>(state_.counts[id]) * static_cast<double>(size_of(strong(g_[id].dtype)));
    const cost::Machine& machine = state_.options.machine;
    const double moved = bytes > machine.near_bytes ? kPasses * bytes : 0;
    return kOfALaunch + moved / machine.bytes_an_operation();
  }

  bool may_store(Id id) const {
    const Op op = g_[id].op;
    return state_.stored[id] == 0 && (is_alu(op) || op == Op::Reduce) && state_.of_rows[id] == 0 &&
           !state_.is_for_rows(id) && !is_number(g_, id);
  }
  bool store(Id id) {
    state_.stored[id] = 1;
    return stored_any_ = true;
  }
  bool is_computed(Id id, Id output) const { return id == output || state_.stored[id] == 0; }
  double elements(Id id) const { return static_cast<double>(state_.once[id]); }
  double unclaimed(Id id) const { return elements(id) - claimed_[id]; }

  SchedulerState& state_;
  const Graph& g_;
  Evaluations evaluations_;
  std::vector<double> claimed_;    // by id: elements that kernels before compute
  std::vector<double> below_;      // by id: operations of this kernel for it and for what it needs
  std::vector<uint32_t> readers_;  // by id: in this kernel
  std::vector<uint8_t> varies_;    // by id: not an integer that follows from positions alone
  std::vector<uint32_t> mark_;     // by id: epoch in which it, or a value above it, was chosen
  uint32_t epoch_ = 0;
  double base_ = 0, excess_ = 0;
  bool stored_any_ = false;
};

}  // namespace

bool limit_evaluations(SchedulerState& state) {
  return EvaluationLimiter(state).run();
}

}  // namespace plugrad::schedule
