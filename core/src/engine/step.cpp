// An optimiser's step: recorded as assignments, computed in one plan, undone on failure.
#include <algorithm>
#include <exception>
#include <utility>

#include "engine/recording/call_observer.h"
#include "engine/session_state.h"
#include "plugrad/error.h"

namespace plugrad::engine {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;

thread_local bool records_step = false;

// Empties the list before its entries die: a state that dies searches the list.
void forget_step(SessionState& state) noexcept {
  const auto assigned = std::exchange(state.step_assigned, {});
}

}  // namespace

Session::StepScope::StepScope()
    : outer_(std::exchange(records_step, true)), exceptions_(std::uncaught_exceptions()) {}
Session::StepScope::~StepScope() {
  records_step = outer_;
  if (std::uncaught_exceptions() <= exceptions_) return;
  Session& session = Session::current();
  const Guard guard(session.mutex_);
  session.undo_step();
}

void Session::StepScope::done() const noexcept {
  Session& session = Session::current();
  const Guard guard(session.mutex_);
  if (!outer_) forget_step(*session.state_);
}

void Session::note_assignment(TensorState& state) {
  if (!records_step || state_->step_assigned.contains(&state)) return;
  SessionState::Before before{make(state.node, state.device), state.pending};
  state_->step_assigned.emplace(&state, std::move(before));
}

void Session::undo_step() {
  const auto assigned = std::exchange(state_->step_assigned, {});
  for (const auto& [state, before] : assigned) {
    denote(*state, before.state->node);
    if (!before.was_pending) state_->forget_assignments(state);
  }
  state_->maybe_garbage = true;
}

void Session::step_realize() {
  const Guard guard(mutex_);
  if (CallObserver* observer = CallObserver::active()) observer->step_done();
  std::vector<StatePtr> losses;
  for (const auto& weak : state_->losses)
    if (StatePtr loss = weak.lock()) losses.push_back(std::move(loss));
  std::vector<TensorState*> own;
  for (const StatePtr& loss : losses) own.push_back(loss.get());
  try {
    try {
      realize_with_pending(own);
    } catch (const OutOfMemoryError&) {
      for (const auto& [state, before] : state_->step_assigned) own.push_back(state);
      if (state_->pending.size() <= state_->step_assigned.size()) throw;
      realize(own);
    }
  } catch (...) {
    undo_step();
    throw;
  }
  forget_step(*state_);
  state_->losses.clear();
}

}  // namespace plugrad::engine
