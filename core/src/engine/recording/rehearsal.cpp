#include "engine/recording/rehearsal.h"

#include "engine/session_state.h"

namespace plugrad::engine {

Rehearsal::Rehearsal(Session& session) : session_(session) {
  const Session::Lock lock(session_);
  session_.state().each_state([&](TensorState& state) {
    if (const StatePtr alive = state.weak_from_this().lock()) states_.push_back(alive);
  });
  for (const StatePtr& state : states_) {
    existing_.push_back(session_.make(state->node, state->device));
    was_pending_.push_back(state->pending);
  }
  random_ = session_.random();
}

Rehearsal::~Rehearsal() {
  if (!is_undone_) undo();
}

// Takes no Session::Lock, whose safe point may need memory: a destructor calls this.
std::size_t Rehearsal::undo() {
  const std::lock_guard guard(session_.mutex());
  is_undone_ = true;
  drew_random_ = session_.random().counter != random_.counter;
  std::size_t count = 0;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    TensorState& state = *states_[i];
    const bool is_view = state.links.base != nullptr;  // pending is what it shows
    if (state.node == existing_[i]->node || !(state.pending || is_view)) continue;
    count += state.pending;
    if (!was_pending_[i]) session_.state().forget_assignments(&state);
    session_.denote(state, existing_[i]->node);
  }
  session_.random() = random_;
  return count;
}

}  // namespace plugrad::engine
