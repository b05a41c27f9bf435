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

// The sharded value that value `number` is a part of and that a tensor had before the call; else
// `number` itself.
uint32_t JitReplay::whole_of(uint32_t number) const {
  if (recording_.values[number].kind != JitValue::Kind::Made) return number;
  for (const JitRun& run : recording_.runs)
    if (!run.ready && !run.joined && std::ranges::find(run.roots, number) != run.roots.end())
      return run.inputs[0];
  return number;
}

bool JitReplay::is_joined(uint32_t number) const {
  return std::ranges::any_of(recording_.runs, [&](const JitRun& run) {
    return run.joined && std::ranges::find(run.inputs, number) != run.inputs.end();
  });
}

// The tensor in `renewed` that has the input's value, or the sharded value that it is a part of, if
// only the graph holds that value; else null.
engine::TensorState* JitReplay::only_holder(const JitRun& run, const schedule::Donation& pair,
                                            std::span<engine::TensorState* const> renewed) const {
  const uint32_t number = run.inputs[run.ready->plan.buffers[pair.input].number];
  const uint32_t whole = whole_of(number);
  const JitValue& from = recording_.values[whole];
  if (from.kind != JitValue::Kind::Tensor || is_wanted_afterwards(whole)) return nullptr;
  engine::TensorState* const state = states_[from.tensor].get();
  if (!std::ranges::binary_search(renewed, state)) return nullptr;
  const engine::ValuePtr& value = values_[number];
  long holders = 3;  // the table of values, this replay, the inputs of its run
  if (whole != number) {
    // The table of values and this replay hold the whole, which holds its part for each position.
    if (values_[whole].use_count() != 2 || is_joined(number)) return nullptr;
    holders = 2 + std::ranges::count(values_[whole]->sharded->parts, value);
  }
  if (value.use_count() != holders || !value->buffer || value->buffer.use_count() != 1 ||
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
      for (const engine::TensorState* each : states)  // their views will show the new values
        for (engine::TensorState* view = each->links.first; view; view = view->links.next)
          session.leaving.push_back(view);
      std::ranges::sort(session.leaving);
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
