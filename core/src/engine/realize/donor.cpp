// Donates the memory of values that assignments replace, in calls of functions that run in parts. A
// recording knows what its call leaves behind (jit/donations.cpp); here live tensors decide.
#include <algorithm>

#include "engine/realize/work.h"

namespace plugrad::engine {

Session::DonorScope::DonorScope(Session& session, const Work* work,
                                const std::vector<ValuePtr>& inputs)
    : session_(session), work_(work), inputs_(inputs) {
  if (work && !work->ready->plan.donations.empty())
    session_.state_->may_donate = [this](const schedule::Donation& pair) { return allows(pair); };
}

// Tensors, ascending, that the plan gives their latest value and that keep no history then, and what
// an optimiser's step would give back to them.
std::vector<TensorState*> Session::DonorScope::replacing() const {
  SessionState& state = *session_.state_;
  std::vector<TensorState*> found;
  for (TensorState* const each : state.pending) {
    const Id base = session_.stored_base(each->node, each->device);
    const bool has_history =
        !each->requires_grad && state.tape.is_tracked(session_.graph_, each->node);
    if (has_history || std::ranges::find(work_->roots, base) == work_->roots.end()) continue;
    found.push_back(each);
    const auto step = state.step_assigned.find(each);
    if (step != state.step_assigned.end()) found.push_back(step->second.state.get());
  }
  std::ranges::sort(found);
  return found;
}

// The nodes of each value that could be replaced; none for one that a live tensor needs.
void Session::DonorScope::find_holders() {
  is_known_ = true;
  SessionState& state = *session_.state_;
  const schedule::Plan& plan = work_->ready->plan;
  for (const schedule::Donation& pair : plan.donations)
    nodes_.try_emplace(inputs_[plan.buffers[pair.input].number].get());
  state.leaving = replacing();
  session_.mark();
  state.leaving.clear();
  for (Id id = 0; id < session_.graph_.size(); ++id) {
    const auto found = nodes_.find(state.values.find(id));
    if (found == nodes_.end()) continue;
    if (state.marks[id] != 0)
      nodes_.erase(found);
    else
      found->second.push_back(id);
  }
}

bool Session::DonorScope::allows(const schedule::Donation& pair) {
  if (!is_known_) find_holders();
  const ValuePtr& value = inputs_[work_->ready->plan.buffers[pair.input].number];
  const auto found = nodes_.find(value.get());
  if (found == nodes_.end() || !value->buffer || value->buffer->is_part() ||
      value->buffer.use_count() != 1 ||
      value.use_count() != static_cast<long>(found->second.size()) + 1)
    return false;
  // An equal node that is recorded later must not find what is gone. No Buffer equals another.
  std::vector<Id> kept;
  for (const Id id : found->second)
    if (session_.graph_[id].op == Op::Buffer)
      kept.push_back(id);
    else
      session_.state_->values.set(id, nullptr);
  found->second = std::move(kept);
  return true;
}

}  // namespace plugrad::engine
