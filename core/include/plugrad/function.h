/// Functions with the user's own backward, as torch.autograd.Function and jax.custom_vjp.
///
///   const CustomFunction clip{
///       "clip",
///       [](FunctionContext&, const std::vector<Tensor>& x) { return std::vector{x[0].clamp(-1,
///       1)}; },
///       [](const FunctionContext&, const std::vector<Tensor>& g) { return g; }};  // straight
///       through
///   Tensor y = clip({x})[0];
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad {

/// What forward and backward of one call see.
class PLUGRAD_API FunctionContext {
 public:
  /// The tensors that the function was called with; in forward without their gradients.
  const std::vector<Tensor>& inputs() const { return inputs_; }
  /// What the call returned. Only in backward; it may be differentiated through.
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// In forward: keeps a value for backward, where it is a constant. Inputs and outputs need not be
  /// saved.
  void save(const Tensor& value) { saved_.push_back(value); }
  const std::vector<Tensor>& saved() const { return saved_; }
  /// In backward: whether a gradient of that input is used. If not, it may be left undefined.
  bool needs_gradient(size_t input) const { return needed_.at(input); }

 private:
  friend struct CustomFunction;
  friend class FunctionCaller;
  std::vector<Tensor> inputs_, outputs_, saved_;
  std::vector<bool> needed_;
};

struct PLUGRAD_API CustomFunction {
  /// Any tensor functions; whole values, so that loops and host code are allowed too. Gradients do
  /// not flow through what it does, nor to tensors that it captures.
  using Forward =
      std::function<std::vector<Tensor>(FunctionContext&, const std::vector<Tensor>& inputs)>;
  /// `gradients`: one an output, of its shape and dtype (zeros where the loss does not depend on
  /// it; undefined for outputs that are no floats). Returns one an input, of its shape and dtype,
  /// or a number; undefined means none. Made of tensor functions it can be differentiated again.
  /// Runs while the session is locked: it must not wait for other threads that use tensors.
  using Backward = std::function<std::vector<Tensor>(const FunctionContext&,
                                                     const std::vector<Tensor>& gradients)>;

  std::string name;  ///< what messages begin with
  Forward forward;
  Backward backward;

  /// The outputs of forward, any number of at least one, of any shapes and dtypes. Their gradients
  /// are backward's, in backward() and gradient(). Errors: User, "[name] …", when an input or
  /// output is undefined; later for what backward returns in a wrong number, shape or dtype. What
  /// either throws passes through, and every tensor stays as it was. Source: as PyTorch's
  /// autograd.Function.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) const;
};

}  // namespace plugrad
