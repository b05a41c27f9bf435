// Reductions that gather terms by an index which is data.
//
//   out[r] = sum over i of where(at[i] == r, v[i], 0)        at and v do not depend on r
//
// Computed as written, this visits rows * count terms. The scheduler marks such a Reduce, and
// codegen (passes/index_stores.cpp) makes it a loop over i that adds v[i] to out[at[i]].
#pragma once

#include <optional>

#include "schedule/scheduler_state.h"

namespace plugrad::schedule {

/// The axis `r` where the reduction of `x` along `axes` has the form above and is worth a mark.
std::optional<size_t> indexed_axis(const Graph& graph, Shapes& shapes, Op op, Id x,
                                   std::span<const int64_t> axes);

/// Fills state.indexed and state.computed.
void find_indexed(SchedulerState& state);

}  // namespace plugrad::schedule
