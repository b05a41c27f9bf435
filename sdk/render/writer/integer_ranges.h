// Which integer operations of a kernel cannot overflow: those may be written as the language's own
// signed arithmetic, which compilers understand far better than one that wraps. And how often loops
// turn at most.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::render {

/// By instruction: an ADD, SUB, MUL or NEG of integers whose exact result fits its dtype, whatever
/// memory holds. Index arithmetic over group ids and loops is, as code generation makes it.
std::vector<bool> operations_without_overflow(const sdk::IrView& ir);

/// By instruction, of a LOOP: the most turns that the ranges of its two bounds allow; 0 of others.
/// A bound that comes from memory has the range of its dtype.
std::vector<uint64_t> most_turns_of_loops(const sdk::IrView& ir);

}  // namespace plugrad::render
