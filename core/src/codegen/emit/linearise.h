// The last step: a kernel graph becomes instructions in order, with explicit loops and
// accumulators.
#pragma once

#include "codegen/emit/ir_writer.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {

/// The kernel IR block of an expanded, lowered kernel. `size` receives the groups and work-items
/// that the Global and Local axes ask for.
std::vector<std::byte> linearise(Kernel& kernel, std::string_view name, LaunchSize& size);

}  // namespace plugrad::codegen
