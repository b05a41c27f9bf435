// The legal changes to a kernel's ranges. Each checks that it is legal and is recorded in kernel.applied.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// Applies one change; Error(User) naming the change and the axis where it is not legal.
void apply(Kernel& kernel, const Optimisation& change);

/// Applies a Local or Group change unless the group would be larger than the device allows.
void apply_if_it_fits(Kernel& kernel, const Optimisation& change);

}  // namespace plugrad::codegen
