// Picks optimisations at once, from the kernel's accesses and the device's description. No device names.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

void apply_heuristic(Kernel& kernel);

}  // namespace plugrad::codegen
