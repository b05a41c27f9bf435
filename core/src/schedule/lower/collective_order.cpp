#include "schedule/lower/collective_order.h"

#include <algorithm>

namespace plugrad::schedule {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

/// The stored values that a kernel reads, walking from its outputs.
class KernelDependencies {
 public:
  explicit KernelDependencies(const SchedulerState& state)
      : state_(state), kernel_of_(state.graph.size(), kNone), epoch_(state.graph.size()) {
    for (uint32_t k = 0; k < state.kernels.size(); ++k)
      for (const Id output : state.kernels[k]) kernel_of_[output] = k;
  }

  std::vector<uint32_t> of(uint32_t kernel) {
    std::vector<uint32_t> found;
    std::vector<Id> stack = state_.kernels[kernel];
    const uint32_t epoch = kernel + 1;
    while (!stack.empty()) {
      const Id id = stack.back();
      stack.pop_back();
      if (epoch_[id] == epoch) continue;
      epoch_[id] = epoch;
      if (kernel_of_[id] != kNone && kernel_of_[id] != kernel) {
        found.push_back(kernel_of_[id]);
        continue;
      }
      for (const Id source : state_.graph.sources(id)) stack.push_back(source);
      if (const auto limits = state_.limits.find(id); limits != state_.limits.end())
        for (const Limit& limit : limits->second) stack.push_back(limit.count);
    }
    return found;
  }

 private:
  const SchedulerState& state_;
  std::vector<uint32_t> kernel_of_;  // by node that a kernel stores
  std::vector<uint32_t> epoch_;
};

/// The kernels that are collectives, in the order in which they must run.
std::vector<uint32_t> collectives_of(const SchedulerState& state) {
  std::vector<uint32_t> found;
  for (uint32_t k = 0; k < state.kernels.size(); ++k)
    if (state.graph[state.kernels[k][0]].op == Op::Collective) found.push_back(k);
  std::ranges::stable_sort(
      found, {}, [&](uint32_t k) { return collective_order(state.graph, state.kernels[k][0]); });
  return found;
}

}  // namespace

int64_t collective_order(const Graph& graph, Id id) {
  const auto list = graph.arg_list(id);
  return list[static_cast<size_t>(list[0]) + 1];  // after the shape
}

void order_collectives(SchedulerState& state) {
  const std::vector<uint32_t> collectives = collectives_of(state);
  if (std::ranges::is_sorted(collectives)) return;
  std::vector<uint32_t> before(state.kernels.size(), kNone);  // the collective before
  for (size_t i = 1; i < collectives.size(); ++i) before[collectives[i]] = collectives[i - 1];
  KernelDependencies dependencies(state);
  std::vector<std::vector<Id>> ordered;
  std::vector<bool> is_done(state.kernels.size()), is_open(state.kernels.size());
  std::vector<uint32_t> stack;
  for (uint32_t first = 0; first < state.kernels.size(); ++first) {
    stack.push_back(first);
    while (!stack.empty()) {
      const uint32_t kernel = stack.back();
      if (is_done[kernel] || is_open[kernel]) {
        stack.pop_back();
        if (is_done[kernel]) continue;
        is_done[kernel] = true;
        ordered.push_back(state.kernels[kernel]);
        continue;
      }
      is_open[kernel] = true;
      std::vector<uint32_t> needed = dependencies.of(kernel);
      if (before[kernel] != kNone) needed.push_back(before[kernel]);
      std::ranges::sort(needed, std::greater());
      for (const uint32_t k : needed)
        if (!is_done[k]) stack.push_back(k);
    }
  }
  state.kernels = std::move(ordered);
}

}  // namespace plugrad::schedule
