// Moves checks of indices that a step computes out of the loop: the step outputs their reports, and
// the loop's results carry the first report of all steps that names an element.
#pragma once

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// A check of `count` indices in each step.
struct LoopCheck {
  uint64_t range = 0;  ///< its index in the session's table
  int64_t count = 0;
};

/// Replaces each check by its indices, and appends the reports to the step's outputs.
std::vector<LoopCheck> take_checks(LoopStep& step);

/// Removes the reports, the last outputs, from the loop's results. A read of a result, or of a
/// value computed from it, fails if a report names an element. Its number counts the indices of all
/// steps in the order of the axis, in either direction of the loop.
void put_checks(LoopArrays& arrays, std::span<const LoopCheck> checks, const AxisSize& length);

}  // namespace plugrad::tensor
