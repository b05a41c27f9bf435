// The session's data other than the graph.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "engine/causes/plan_misses.h"
#include "engine/computed_nodes.h"
#include "engine/lengths/length_history.h"
#include "engine/numbers/number_history.h"
#include "engine/origins/node_origins.h"
#include "engine/plan/canonical.h"
#include "engine/plan/ready_plan.h"
#include "engine/recent_cache.h"
#include "engine/recording/prepared_constants.h"
#include "engine/recording/recorded_nodes.h"
#include "engine/refine/candidate_thread.h"
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
  uint64_t states_made = 0;
  std::vector<TensorState*> pending;
  std::unordered_map<TensorState*, std::weak_ptr<Value>>
      replaced;                                                // by pending state: its value before
  std::unordered_map<TensorState*, std::vector<Id>> versions;  // earlier nodes of pending states
  ComputedNodes computed;
  NodeOrigins operations;  // of traces (base/trace/call_site.h); filled only while tracing()
  NodeOrigins places;      // of the program's lines (base/binding.h)
  std::vector<Id> walked;  // by node of the last planned graph: the node of the session's graph
  HeldNodes held;          // by id of the graph
  struct Before {          // an assignment of the step being recorded
    StatePtr state;
    bool was_pending = false;
  };
  std::unordered_map<TensorState*, Before> step_assigned;
  std::vector<std::weak_ptr<TensorState>> losses;

  CanonicalGraph canonical;
  // 64 plans serve a program with several networks or sequence lengths, however large the plans
  // are.
  RecentCache<std::shared_ptr<ReadyPlan>> plans{{1024, 64, 16 << 20}};
  NumberHistories number_histories{{2048, 512, 4 << 20}};
  LengthHistories length_histories{{2048, 512, 4 << 20}};
  PlanMisses plan_misses;
  uint64_t values_read = 0;  // by the host
  RecordedNodesCache recorded{{512, 512, 1 << 20}};
  std::vector<uint64_t> key_words;    // scratch of a key of `recorded`
  uint64_t graph_number = 1;          // of the session's graph: renumbering makes another
  MayDonate may_donate;               // of the replay that is running
  PreparedConstantsList constants;    // of all recordings
  std::vector<TensorState*> leaving;  // states that marking skips, ascending
  KernelCache kernels;
  CandidateThread candidates{[] { Session::current().state().candidates.stop(); }};
  ArenaPool arenas;
  Statistics statistics;

  std::vector<uint8_t> marks;             // by node, of the last marking
  std::vector<Id> live;                   // marked nodes, ascending
  uint32_t renumber_above = kSmallGraph;  // nodes
  bool maybe_garbage = false;             // a state died or moved since the last marking
  // A value may have become unreachable since then that an equal node, recorded later, would find.
  bool maybe_unreached_value = false;
  bool has_values_between = false;  // that states reach and none denotes
  std::vector<uint64_t> reads;      // TensorState::recorded of what is being computed
  uint64_t new_cost = 0;            // of the values made since the last marking
  static constexpr uint32_t kSmallGraph = 1024;
  // In the bytes that are filled meanwhile. Marking visits the live nodes: 14 ns for each where 4,500
  // tensors were live; and it skips the dead ones, in 3 ns. A value is allocated and its kernel
  // launched in about a microsecond.
  static constexpr uint64_t kCostOfLive = 64, kCostOfNode = 16, kCostOfValue = 4096;

  void note_new_value(uint64_t bytes) { new_cost += kCostOfValue + bytes; }
  /// Whether marking may free memory, and costs little beside making the new values.
  bool is_marking_due(uint64_t nodes) const {
    return maybe_garbage && new_cost >= kCostOfLive * live.size() + kCostOfNode * nodes;
  }

  /// Call before the state denotes anything other than node `base` or a view of it.
  void note_replaced(TensorState& state, Id base) {
    if (values.find(base)) replaced[&state] = values.share(base);
  }
  /// Numbers, ascending, of the inputs that are previous values of pending states.
  std::vector<uint32_t> replaced_inputs(std::span<const ValuePtr> inputs) const;

  /// Call when the state is realised, destroyed or restored.
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
  /// Bases that are gone while several views live (engine/views/linked_views.h).
  template <class Visit>
  void each_lost_base(Visit visit) {
    each_state([&](TensorState& state) {
      TensorState* const base = state.links.base;
      if (base && base->links.is_lost && base->links.first == &state) visit(*base);
    });
  }
};

/// Whether this thread holds a Session::Lock: then it must not wait for a thread that may want the
/// session.
bool holds_session_lock();

}  // namespace plugrad::engine
