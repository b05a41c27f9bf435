// Runs a recorded loop: the plan of its body, once for each index of the stepped arrays.
#pragma once

#include <span>

#include "engine/plan/ready_plan.h"

namespace plugrad::engine {

/// `params`: plan buffers of the step, outputs first, in the order of LoopBody. `buffers` and
/// `values`: by plan buffer of the enclosing plan; values may be missing.
void run_loop(const ReadyLoop& loop, std::span<const uint32_t> params,
              std::span<runtime::Buffer* const> buffers, std::span<const ValuePtr> values,
              LaunchLog& log);

}  // namespace plugrad::engine
