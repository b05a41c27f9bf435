// How often the loops of a kernel turn, and how they are unrolled to turn less often.
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/sdk/ir_view.h"

namespace plugrad::render {

struct LoopPlan {
  // By instruction; of a LOOP how many turns stand in the text one after the other: 1, or as many
  // as the loop has, or a part of those with which its constant number of turns is counted.
  std::vector<uint32_t> unrolled;
  // By instruction: whether the LOOP adds to so many vectors that turns side by side gain nothing,
  // and their operands would take the registers.
  std::vector<bool> holds_tile;
  // All loops together may turn more than `most` times for one work-item.
  bool may_turn_too_often = false;
};

// Innermost loops first, as few as it takes. `most` 0: loops may turn as often as they like.
LoopPlan plan_loops(const sdk::IrView& ir, uint64_t most);

}  // namespace plugrad::render
