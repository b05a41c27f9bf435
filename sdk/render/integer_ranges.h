// Which integer operations of a kernel cannot overflow: those may be written as the language's own
// signed arithmetic, which compilers understand far better than one that wraps.
#pragma once

#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::render {

/// By instruction: an ADD, SUB, MUL or NEG of integers whose exact result fits its dtype, whatever
/// memory holds. Index arithmetic over group ids and loops is, as code generation makes it.
std::vector<bool> operations_without_overflow(const sdk::IrView& ir);

}  // namespace plugrad::render
