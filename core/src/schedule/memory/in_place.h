// Which outputs of a plan may lie where an input lies that nobody wants afterwards.
#pragma once

#include <memory>
#include <span>

#include "schedule/schedule.h"

namespace plugrad::schedule {

/// Fills plan.in_place for the inputs that options name: an output of the same form that is written
/// behind the last read, or by a kernel that reads each element of the input where it writes it.
/// Such kernels, `kernels` by step, become ones of which these two parameters may be one buffer.
/// The nodes and outputs that are looked at are added to `visits`.
void find_in_place(Plan& plan, std::span<std::shared_ptr<KernelAst>> kernels,
                   const Options& options, uint64_t& visits);

}  // namespace plugrad::schedule
