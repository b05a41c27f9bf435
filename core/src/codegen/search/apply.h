// The legal changes to a kernel's ranges. Each checks that it is legal and is recorded in kernel.applied.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Applies one change; Error(User) naming the change and the axis where it is not legal.
void apply(Kernel& kernel, const Optimisation& change);

}  // namespace plugrad::codegen
