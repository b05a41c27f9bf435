// Loops with gradients: that of a loop is a loop in the other direction, whose step computes the
// recorded one again from the states that were kept.
#pragma once

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// call_loop() with a gradient, any number of times. `captured`: what stands where the step has
/// captured placeholders already; what else it captures is found here. No size but the length
/// varies.
LoopArrays differentiable(LoopStep step, const std::vector<Tensor>& states,
                          const std::vector<Tensor>& inputs, const std::vector<Tensor>& captured,
                          const AxisSize& length);

/// The state after the last step; `first` where there is none.
Tensor last_state(const Tensor& states, const Tensor& first, const AxisSize& length,
                  bool is_reversed);

}  // namespace plugrad::tensor
