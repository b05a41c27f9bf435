// Bounds the iterations of a kernel's loops, and unrolls loops to reduce them.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::render {

struct LoopPlan {
  // Per LOOP: the unroll factor. It is 1, the whole iteration count, or a divisor of a constant
  // count.
  std::vector<uint32_t> unrolled;
  // Per LOOP: true if it accumulates so many vectors that unrolling gains no parallelism and its
  // operands would occupy the registers.
  std::vector<bool> holds_tile;
  // All loops together may exceed `most` iterations for one work-item.
  bool may_turn_too_often = false;
};

// Unrolls innermost loops first, as few as needed. `most` 0: unlimited.
LoopPlan plan_loops(const sdk::IrView& ir, uint64_t most);

}  // namespace plugrad::render
