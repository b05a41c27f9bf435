// Picks optimisations at once, from the kernel's accesses and the device's description. No device
// names.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

void apply_heuristic(Kernel& kernel);

/// The choice for devices whose work-items run in step.
void apply_group_heuristic(Kernel& kernel);

/// Gives a product of matrices to a tensor core of the device; false where there is none for it.
bool apply_tensor_core_heuristic(Kernel& kernel);

}  // namespace plugrad::codegen
