// One computation for the equal parts of a joined tensor.
#pragma once

#include "schedule/scheduler_state.h"
#include "schedule/tensor_builder.h"

namespace plugrad::schedule {

/// Rewrites what the scheduler state's roots need; returns what each node became, by id.
std::vector<Id> join_parts(SchedulerState& state, TensorBuilder& build);

}  // namespace plugrad::schedule
