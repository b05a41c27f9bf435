// Donates buffers in replays: a replay that renews a tensor may compute the new value in the old
// one's memory if no other tensor, tape, recording or thread can read it.
#include <algorithm>
#include <optional>

#include "engine/session_state.h"
#include "jit/calls.h"

namespace plugrad::jit_detail {

// Tensors that denote another node after the call, ascending.
std::vector<engine::TensorState*> JitReplay::renewed() const {
  std::vector<engine::TensorState*> states;
  for (const JitUpdate& update : recording_.updates)
    if (!update.is_gradient) states.push_back(states_[update.tensor].get());
  std::ranges::sort(states);
  return states;
}

bool JitReplay::is_wanted_afterwards(uint32_t number) const {
  const auto wants = [&](const JitResult& result) {
    return (result.kind == JitResult::Kind::Value && result.number == number) ||
           std::ranges::find(result.counts, number, &JitCount::value) != result.counts.end();
  };
  return std::ranges::any_of(recording_.results, wants) ||
         std::ranges::any_of(recording_.updates, wants, &JitUpdate::to);
}

// The tensor in `renewed` that has the input's value, if only the graph holds that value; else
// null.
engine::TensorState* JitReplay::only_holder(const JitRun& run, const schedule::Donation& pair,
                                            std::span<engine::TensorState* const> renewed) const {
  const uint32_t number = run.inputs[run.ready->plan.buffers[pair.input].number];
  const JitValue& from = recording_.values[number];
  if (from.kind != JitValue::Kind::Tensor || is_wanted_afterwards(number)) return nullptr;
  engine::TensorState* const state = states_[from.tensor].get();
  if (!std::ranges::binary_search(renewed, state)) return nullptr;
  const engine::ValuePtr& value = values_[number];
  // Holders: the table of values, this replay, the inputs of its run.
  if (value.use_count() != 3 || !value->buffer || value->buffer.use_count() != 1 ||
      value->buffer->is_part())
    return nullptr;
  return state;
}

std::vector<engine::ValuePtr> JitReplay::run_donating(const JitRun& run,
                                                      std::span<const engine::ValuePtr> inputs) {
  engine::SessionState& session = session_.state();
  const std::vector<engine::TensorState*> states = renewed();
  struct Scope {
    engine::SessionState& session;
    ~Scope() {
      session.leaving.clear();
      session.may_donate = nullptr;
    }
  } const scope{session};
  // Marking visits the whole graph, so it runs only if a donation depends on it.
  std::optional<std::vector<Id>> reached;
  const auto is_reached = [&](Id base) {
    if (!reached) {
      session.leaving = states;
      reached = session_.mark();
      session.leaving.clear();
    }
    return std::ranges::binary_search(*reached, base);
  };
  session.may_donate = [&](const schedule::Donation& pair) {
    const engine::TensorState* const state = only_holder(run, pair, states);
    return state && !is_reached(base_of(*state));
  };
  return session_.run_ready(*run.ready, inputs);
}

}  // namespace plugrad::jit_detail
