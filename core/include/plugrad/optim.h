/// Optimisers: they turn the gradients of parameters into their next values.
///
///   optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
///   opt.zero_grad();  loss.backward();  opt.step();
#pragma once

#include <cstdint>
#include <vector>

#include "plugrad/nn.h"
#include "plugrad/tensor.h"

namespace plugrad::optim {

/// What every optimiser has; nn::save and nn::load take its state as they take a module's. All state is in
/// tensors, so that the graph of a step is the same each time.
class PLUGRAD_API Optimizer {
 public:
  void zero_grad();
  const std::vector<Tensor>& parameters() const { return parameters_; }
  double learning_rate() const { return learning_rate_; }
  void set_learning_rate(double lr);  ///< from the next step on; compiles nothing anew

 protected:
  /// Errors: User for no parameters, or one that does not require gradients.
  Optimizer(std::vector<Tensor> parameters, double lr);
  /// Errors: User when no parameter has a gradient.
  void require_gradients() const;
  /// A zero tensor like each parameter.
  std::vector<Tensor> zeros_like_parameters() const;
  /// Computes parameters, `state` and whatever the step's loss and layers left pending, in one plan.
  void realize_step(const std::vector<const std::vector<Tensor>*>& state) const;

  std::vector<Tensor> parameters_;
  Tensor lr_;

 private:
  double learning_rate_;
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;  ///< added to the gradient, times the parameter
};
/// b = momentum b + g; p -= lr b (or lr (g + momentum b) with nesterov). Sutskever et al. 2013.
class PLUGRAD_API SGD : public Optimizer {
 public:
  /// Errors: User for nesterov without momentum.
  SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void visit_fields(nn::StateVisitor& visitor) const { visitor.visit("velocity", velocity_); }

 private:
  SGDOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.0;  ///< Adam adds it to the gradient; AdamW shrinks the parameter by it
};
/// Kingma and Ba 2015.
class PLUGRAD_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void visit_fields(nn::StateVisitor& visitor) const {
    visitor.visit("mean, variance, correction", mean_, variance_, correction_);
  }

 protected:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options, bool decoupled);

 private:
  void record_update(size_t i);
  AdamOptions options_;
  bool decoupled_;  ///< weight decay acts on the parameter, not on the gradient
  std::vector<Tensor> mean_, variance_;
  /// 1 - beta^t for both betas, followed as an average of ones: near t = 1 the plain formula cancels.
  std::vector<Tensor> correction_;
  Tensor betas_, gains_;  ///< (beta1, beta2) and what is left of 1
};

/// Adam whose weight decay is decoupled from the gradient. Loshchilov and Hutter 2019.
class PLUGRAD_API AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, AdamOptions options = {.weight_decay = 0.01});
};

}  // namespace plugrad::optim
