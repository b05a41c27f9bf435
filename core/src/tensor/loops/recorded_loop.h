// Loops of which one step is recorded: the step as nodes over placeholders, and the call that makes
// an array of what all steps give.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tensor/record.h"
#include "tensor/variable_sizes.h"

namespace plugrad::tensor {

/// One step. What it reads are placeholders, when close() has replaced what it captures.
struct LoopStep {
  std::vector<Tensor> states, inputs, captured;  // placeholders
  std::vector<Tensor> next_states, outputs;
  std::vector<Tensor> terms;  // of sums over all steps
  bool is_reversed = false;
};

/// A tensor without a value, on the device of `like`, with the variable sizes of `like`, of which
/// the first `skipped` axes are left out. Of constants alone: on the device given, 0 for the
/// default one.
Tensor placeholder_like(const Tensor& like, size_t skipped, uint32_t of_constants = 0);

/// The array of a placeholder, below its variable sizes.
Tensor memory_of(const Tensor& placeholder);

/// What of the sources of a node a step computes with. A function of the user's is its value, and
/// gradients go to its inputs.
std::span<const Id> used_sources(Recorder& r, Id id);

/// Whatever the step computes with and no placeholder leads to, constants excepted, becomes a
/// captured placeholder: below views, so that the least is stored. A gradient then ends there.
/// Gives what was replaced.
std::vector<Tensor> close(std::string_view function, LoopStep& step);

/// What all steps give. Places behind a variable length hold anything.
struct LoopArrays {
  std::vector<Tensor> states;   // (length, …), after each step
  std::vector<Tensor> outputs;  // (length, …)
  std::vector<Tensor> sums;     // of the terms' shapes and dtypes
};

/// Without a gradient. `states`, `inputs`, `captured`: what stands where the step has its own; the
/// inputs have the length, at least 1, as their first axis.
LoopArrays call_loop(std::string_view function, const LoopStep& step,
                     const std::vector<Tensor>& states, const std::vector<Tensor>& inputs,
                     const std::vector<Tensor>& captured, const AxisSize& length);

}  // namespace plugrad::tensor
