// Finds integer operations that cannot overflow, which may be rendered in the language's signed
// arithmetic: compilers optimise it better than wrapping arithmetic. Also bounds the iterations of
// loops.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::render {

/// Per instruction: true for an integer ADD, SUB, MUL or NEG whose exact result fits its dtype for
/// all memory contents. Generated index arithmetic over group ids and loop counters qualifies.
std::vector<bool> operations_without_overflow(const sdk::IrView& ir);

/// Per LOOP: the maximum iterations by the ranges of its bounds; 0 for other instructions. A bound
/// loaded from memory has the range of its dtype.
std::vector<uint64_t> most_turns_of_loops(const sdk::IrView& ir);

}  // namespace plugrad::render
