// Orders the kernels of a plan so that collectives between processes run in one order in all of
// them.
#pragma once

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// Moves kernels as little as that needs; every kernel stays behind those that it reads from.
void order_collectives(SchedulerState& state);

/// The number by which a Collective is ordered; see sharding/collectives.h.
int64_t collective_order(const Graph& graph, Id id);

}  // namespace plugrad::schedule
