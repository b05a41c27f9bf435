/// Functions with a backward of the user's, like torch.autograd.Function and jax.custom_vjp:
///   const CustomFunction clip{
///       "clip",
///       [](FunctionContext&, const std::vector<Tensor>& x) {
///         return std::vector{x[0].clamp(-1, 1)};
///       },
///       [](const FunctionContext&, const std::vector<Tensor>& g) { return g; }};  // identity
///   Tensor y = clip({x})[0];
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad {

/// Inputs, outputs and saved values of one call, for its forward and backward.
class PLUGRAD_API FunctionContext {
 public:
  /// The tensors that the function was called with; in forward, detached from the gradient.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  /// The outputs of the call. Only in backward; gradients flow through them.
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// In forward: keeps a value for backward, where it is a constant. Inputs and outputs are kept
  /// without it.
  void save(const Tensor& value) { saved_.push_back(value); }
  const std::vector<Tensor>& saved() const { return saved_; }
  /// In backward: whether the gradient of that input is needed. If not, it may be left undefined.
  bool needs_gradient(size_t input) const { return needed_.at(input); }

 private:
  friend struct CustomFunction;
  friend class FunctionCaller;
  std::vector<Tensor> inputs_, outputs_, saved_;
  std::vector<bool> needed_;
};

struct PLUGRAD_API CustomFunction {
  /// Any tensor functions. Values are whole tensors, so that host loops and host code may read
  /// them. No gradient flows through the operations of forward, nor to tensors that it captures.
  using Forward =
      std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>& inputs)>;
  /// `gradients`: one for each output, of its shape and dtype (zeros where the loss does not depend
  /// on it; undefined for outputs that are not floats). Returns one for each input, of its shape
  /// and dtype, or a number; undefined means no gradient. A backward of tensor functions can be
  /// differentiated again. Runs while the session is locked: it must not wait for other threads
  /// that use tensors.
  using Backward = std::function<std::vector<Tensor>(const FunctionContext&,
                                                     const std::vector<Tensor>& gradients)>;

  std::string name;  ///< prefix of error messages
  Forward forward;
  Backward backward;

  /// The outputs of forward: one or more, of any shapes and dtypes. backward() and gradient() call
  /// `backward` for their gradients. Errors: User, "[name] …", when an input or output is
  /// undefined; later, when backward returns a wrong number, shape or dtype. Exceptions of both
  /// functions propagate, and every tensor keeps its state. Source: PyTorch's autograd.Function.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
};

}  // namespace plugrad
