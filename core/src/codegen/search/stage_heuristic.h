// Which operands a kernel copies into scratch.
#pragma once

#include "codegen/kernel.h"

namespace plugrad::codegen {

/// For a kernel with its register tile: stages the operand that the lanes load where it is read
/// again often enough. Returns how many output loops, from the outermost on, may run in parallel
/// without copying it more than once.
size_t stage_operands(Kernel& kernel);

}  // namespace plugrad::codegen
