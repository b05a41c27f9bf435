// Kernels that reduce each row and then run along it again, on devices whose work-items run in
// step.
#pragma once

#include <utility>
#include <vector>

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Changes, with the numbers of their axes, that give a group one row or a few: its work-items
/// share every pass along the row. Nothing for rows that are too short. `kernel` has one store.
std::vector<std::pair<uint32_t, ScheduleStep>> choose_workgroup_per_row(
    const Kernel& kernel, const std::vector<uint32_t>& row_axes);

}  // namespace plugrad::codegen
