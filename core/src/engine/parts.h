// What the session is made of, beside the graph.
#pragma once

#include <unordered_map>
#include <vector>

#include "engine/canonical.h"
#include "engine/plan.h"
#include "engine/recent_cache.h"
#include "engine/session.h"
#include "engine/tape.h"

namespace plugrad::engine {

struct Session::Parts {
  DeviceTable devices;
  ValueTable values;
  Tape tape;
  uint64_t next_buffer = 1;  // number of the next Buffer node

  TensorState* first_state = nullptr;
  size_t state_count = 0;
  std::vector<TensorState*> pending;
  struct Before {  // an assignment of the step that is being recorded
    StatePtr state;
    bool was_pending = false;
  };
  std::unordered_map<TensorState*, Before> step_assigned;
  std::vector<std::weak_ptr<TensorState>> losses;

  CanonicalGraph canonical;
  RecentCache<std::shared_ptr<ReadyPlan>> plans{1024};
  KernelCache kernels;
  ArenaPool arenas;
  Statistics statistics;

  Reachable reachable;
  uint32_t renumber_above = kSmallGraph;  // nodes
  bool maybe_garbage = false;             // a state died or moved since the last marking
  static constexpr uint32_t kSmallGraph = 16384;

  template <class Visit>
  void each_state(Visit visit) {
    for (TensorState* state = first_state; state; state = state->next) visit(*state);
  }
};

/// Whether this thread is inside a Session::Lock: it must not wait for one that may want the session.
bool holds_session_lock();

}  // namespace plugrad::engine
