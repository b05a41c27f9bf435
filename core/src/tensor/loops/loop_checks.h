// Checks of indices that a step computes leave the loop: the step gives their reports as outputs,
// and what the loop gives is checked by the first report of all steps that names an element.
#pragma once

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// A check of `count` indices in each step.
struct LoopCheck {
  uint64_t range = 0;  ///< its number in the session's table
  int64_t count = 0;
};

/// Replaces checks of what the step computes by the indices, and adds the reports to its outputs.
std::vector<LoopCheck> take_checks(LoopStep& step);

/// Takes the reports, the last outputs, away from what the loop gives; a read of the rest, or of
/// what is computed of it, is an error where one names an element. Its number is that among the
/// indices of all places, whatever the loop's direction.
void put_checks(LoopArrays& arrays, std::span<const LoopCheck> checks, const AxisSize& length);

}  // namespace plugrad::tensor
