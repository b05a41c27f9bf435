// Kernels that differ in constant offsets of their loads alone become one program, which takes the
// offsets at launch: the steps of an unrolled loop over slices of one tensor.
//   before   load p1 (%4*16 + %5 + 32)   load p1 (%4*16 + %5 + 48)   …
//   after    load p1 (%4*16 + %5 + scalar 0 * 16 + 32)               with 0, 1, … at launch
// So do kernels that number alike what they read in another order.
#pragma once

#include <memory>
#include <span>

#include "schedule/schedule.h"

namespace plugrad::schedule {

/// Replaces kernels (by step, null where a step runs none), and sets buffers and scalars of their
/// steps. Offsets become scalars only where at least four different kernels become one: all others
/// keep their constants. The nodes that are looked at are added to `visits`.
void join_programs(Plan& plan, std::span<std::shared_ptr<KernelAst>> kernels,
                   const Options& options, uint64_t& visits);

}  // namespace plugrad::schedule
