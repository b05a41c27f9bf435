// Orders the kernels of a plan so that collectives between processes run beside kernels, and in one
// order in all processes.
//   before   k1  all-reduce(k1)  k3 of the sum  k4
//   after    k1  start all-reduce(k1)  k4  wait for it  k3 of the sum
#pragma once

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// Makes each bucket of collectives one entry of state.kernels, and puts it there twice: for its
/// start and for its end. Every kernel stays behind those that it reads from. Those that a
/// collective needs come first, otherwise kernels keep their order, where they need not wait.
void order_collectives(SchedulerState& state);

}  // namespace plugrad::schedule
