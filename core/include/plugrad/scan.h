/// scan(): a loop whose step is recorded, planned and compiled once and runs for every place of an
/// axis, as jax.lax.scan.
///
///   ScanResult r = scan(
///       [&](const std::vector<Tensor>& state, const std::vector<Tensor>& x) {
///         Tensor h = (matmul(x[0], w) + matmul(state[0], u)).tanh();
///         return ScanResult{{h}, {h}};
///       },
///       {Tensor::zeros({batch, hidden})}, {sequence});  // sequence: (time, batch, in)
#pragma once

#include <functional>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad {

struct ScanResult {
  std::vector<Tensor> state;    ///< after the step, or after the last one
  std::vector<Tensor> outputs;  ///< of the step, or of all steps along a new first axis
};

/// Any tensor functions. Gradients flow to tensors that it captures too.
using ScanStep =
    std::function<ScanResult(const std::vector<Tensor>& state, const std::vector<Tensor>& inputs)>;

/// Calls `step` once, to record it, with a state and with inputs without their first axis; runs
/// what it computes for each place of that axis, from the last place with `reverse`. Lazy;
/// differentiable any number of times. At least one input: Tensor::arange(n) where there is no
/// other. The axis may have a variable size, and may be empty: the state is as it was then. The
/// states of all steps are kept for the gradient, which computes each step again.
/// Shape: input (n, …) -> state as given, output (n, …). Errors: User, where the step returns
/// a state of another shape, dtype or number than it got; assigns to a tensor, draws random
/// numbers, reads a value or copies between devices; where inputs have different lengths.
PLUGRAD_API ScanResult scan(const ScanStep& step, const std::vector<Tensor>& state,
                            const std::vector<Tensor>& inputs, bool reverse = false);

}  // namespace plugrad
