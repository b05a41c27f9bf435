// Loops with one recorded step: the step as nodes over placeholders, and the call that returns
// arrays of the results of all steps.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tensor/record.h"
#include "tensor/sizes/variable_sizes.h"

namespace plugrad::tensor {

/// One step. After close() it reads only placeholders and constants.
struct LoopStep {
  std::vector<Tensor> states, inputs, captured;  // placeholders
  std::vector<Tensor> next_states, outputs;
  std::vector<Tensor> terms;  // to be summed over all steps
  bool is_reversed = false;
};

/// A tensor without a value: the device, dtype and variable sizes of `like` without its first
/// `skipped` axes. If `like` is made of constants only, the device is `of_constants`, 0 being the
/// default.
Tensor placeholder_like(const Tensor& like, size_t skipped, uint32_t of_constants = 0);

/// The placeholder without its variable sizes.
Tensor memory_of(const Tensor& placeholder);

/// The sources of a node that a step computes with: for a user's function its value, and the inputs
/// to which gradients flow.
std::span<const Id> used_sources(Recorder& r, Id id);

/// Replaces each value that the step reads and that depends on no placeholder, except constants, by
/// a captured placeholder; returns the replaced values. Replaces below views, so that the smallest
/// value is stored. Gradients of the step end at placeholders.
std::vector<Tensor> close(std::string_view function, LoopStep& step);

/// Results of all steps. Elements beyond a variable length are unspecified.
struct LoopArrays {
  std::vector<Tensor> states;   // (length, …), after each step
  std::vector<Tensor> outputs;  // (length, …)
  std::vector<Tensor> sums;     // with the shapes and dtypes of the terms
};

/// A loop without a gradient. `states`, `inputs`, `captured`: arguments for the step's
/// placeholders. The first axis of an input is the length, at least 1.
LoopArrays call_loop(std::string_view function, const LoopStep& step,
                     const std::vector<Tensor>& states, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& captured, const AxisSize& length);

}  // namespace plugrad::tensor
