// What the session is made of, beside the graph.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/computed_nodes.h"
#include "engine/plan/canonical.h"
#include "engine/plan/ready_plan.h"
#include "engine/recent_cache.h"
#include "engine/recording/prepared_constants.h"
#include "engine/session.h"
#include "engine/tape.h"
#include "engine/views.h"

namespace plugrad::engine {

struct SessionState {
  DeviceTable devices;
  ValueTable values;
  Tape tape;
  uint64_t next_buffer = 1;  // number of the next Buffer node

  TensorState* first_state = nullptr;
  size_t state_count = 0;
  std::vector<TensorState*> pending;
  std::unordered_map<TensorState*, std::weak_ptr<Value>>
      replaced;                                                // by pending ones: what they denoted
  std::unordered_map<TensorState*, std::vector<Id>> versions;  // of pending ones, but the latest
  ComputedNodes computed;
  HeldNodes held;  // by id of the graph
  struct Before {  // an assignment of the step that is being recorded
    StatePtr state;
    bool was_pending = false;
  };
  std::unordered_map<TensorState*, Before> step_assigned;
  std::vector<std::weak_ptr<TensorState>> losses;

  CanonicalGraph canonical;
  // 64 plans: those of a program with some networks or lengths, however large they are.
  RecentCache<std::shared_ptr<ReadyPlan>> plans{{1024, 64, 16 << 20}};
  MayDonate may_donate;               // of the run of a replay that is at work
  PreparedConstantsList constants;    // of all recordings
  std::vector<TensorState*> leaving;  // states that marking passes by, ascending
  KernelCache kernels;
  ArenaPool arenas;
  Statistics statistics;

  std::vector<uint8_t> marks;             // by node, of the last marking
  std::vector<Id> live;                   // that it found, ascending
  uint32_t renumber_above = kSmallGraph;  // nodes
  bool maybe_garbage = false;             // a state died or moved since the last marking
  // Marking passes over the whole graph whenever no kept buffer serves: 16,384 nodes took 15 us of
  // each replay.
  static constexpr uint32_t kSmallGraph = 1024;

  /// The state is about to denote something else than node `base`, or a view of it.
  void note_replaced(TensorState& state, Id base) {
    if (values.find(base)) replaced[&state] = values.share(base);
  }
  /// Numbers of the inputs that pending states denoted before, ascending.
  std::vector<uint32_t> replaced_inputs(std::span<const ValuePtr> inputs) const;

  /// The state is realised, dead or denotes again what it did.
  void forget_assignments(TensorState* state) {
    if (state->pending) std::erase(pending, state);
    state->pending = false;
    replaced.erase(state);
    versions.erase(state);
  }

  template <class Visit>
  void each_state(Visit visit) {
    for (TensorState* state = first_state; state; state = state->next) visit(*state);
  }
};

/// Whether this thread is inside a Session::Lock: it must not wait for one that may want the
/// session.
bool holds_session_lock();

}  // namespace plugrad::engine
