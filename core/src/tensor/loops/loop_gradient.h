// Gives loops a gradient: a loop in the other direction, whose step recomputes the recorded step
// from the stored states.
#pragma once

#include "tensor/loops/recorded_loop.h"

namespace plugrad::tensor {

/// call_loop(), differentiable any number of times. `captured`: arguments for the captured
/// placeholders that the step has already; this function finds further captures. Only the length
/// may vary.
LoopArrays differentiable(LoopStep step, const std::vector<Tensor>& states,
                          const std::vector<Tensor>& inputs, const std::vector<Tensor>& captured,
                          const AxisSize& length);

/// The state after the last step; `first` if there is no step.
Tensor last_state(const Tensor& states, const Tensor& first, const AxisSize& length,
                  bool is_reversed);

}  // namespace plugrad::tensor
