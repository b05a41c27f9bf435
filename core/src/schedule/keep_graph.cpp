// Keeps the simplified tensor graph with the step that computes each value, for traces.
#include "schedule/scheduler_state.h"

namespace plugrad::schedule {
namespace {

// By id: the first step that computes the value. A value that is not stored may be computed again
// by later steps.
std::vector<int32_t> steps_of_values(const SchedulerState& state) {
  std::vector<int32_t> step_of(state.graph.size(), -1);
  std::vector<Id> stack;
  for (size_t step = 0; step < state.kernels.size(); ++step) {
    stack.assign(state.kernels[step].begin(), state.kernels[step].end());
    while (!stack.empty()) {
      const Id id = stack.back();
      stack.pop_back();
      if (step_of[id] >= 0 || state.graph[id].op == Op::Buffer) continue;
      step_of[id] = static_cast<int32_t>(step);
      for (const Id source : state.graph.sources(id))
        if (state.stored[source] == 0) stack.push_back(source);
    }
  }
  return step_of;
}

}  // namespace

std::shared_ptr<const ScheduledGraph> keep_graph(SchedulerState& state) {
  const std::vector<int32_t> step_of = steps_of_values(state);
  auto kept = std::make_shared<ScheduledGraph>();
  for (const Id id : state.live) {
    const auto shape = state.shapes[id];
    const uint32_t buffer = state.buffer_of[id];
    kept->values.push_back({id, id < state.source_of.size() ? state.source_of[id] : kNoId,
                            step_of[id], buffer == kNoBuffer ? -1 : static_cast<int32_t>(buffer),
                            std::vector<int64_t>(shape.begin(), shape.end())});
  }
  kept->graph = std::move(state.graph);
  return kept;
}

}  // namespace plugrad::schedule
