/// scan(): a loop like jax.lax.scan. The step is recorded, planned and compiled once, and runs for
/// every element of an axis.
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

/// The body: any tensor functions. Gradients also flow to tensors that it captures.
using ScanStep =
    std::function<ScanResult(const std::vector<Tensor>& state, const std::vector<Tensor>& inputs)>;

/// Calls `step` once to record it, with the state and the inputs without their first axis, and runs
/// the recording for each element of that axis, from the last to the first with `reverse`. Lazy;
/// differentiable any number of times. Needs an input: use Tensor::arange(n) if there is no other.
/// The axis may have a variable size, and may be empty: then the state is returned unchanged. The
/// states of all steps are kept for the gradient, which computes each step again. On a mesh the step
/// is called for each element instead. Shape: input (n, …) -> state as given, output (n, …). Errors:
/// User when the step changes the shape, dtype or number of the state, assigns to a tensor, draws
/// random numbers, reads a value or copies between devices, and for inputs of different lengths.
PLUGRAD_API ScanResult scan(const ScanStep& step, const std::vector<Tensor>& state,
                            const std::vector<Tensor>& inputs, bool reverse = false);

}  // namespace plugrad
