/// Optimisers: they turn the gradients of parameters into their next values.
///
///   optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
///   opt.zero_grad();  loss.backward();  opt.step();
///
/// nn::save and nn::load take an optimiser's state as they take a module's. The options, and the
/// learning rate with them, are not part of it.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "plugrad/learning_rate.h"
#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad::optim {

/// What every optimiser has. All state is in tensors, so that the graph of a step is the same each
/// time; it is f64 for f64 parameters and f32 for all others.
class PLUGRAD_API Optimizer {
 public:
  void zero_grad();
  const std::vector<Tensor>& parameters() const { return parameters_; }
  double learning_rate() const { return learning_rate_; }
  /// From the next step on; plans and compiles nothing anew. Errors: User unless finite and >= 0.
  void set_learning_rate(double lr);
  bool has_gradients() const;  ///< of any parameter
  /// Computes what was recorded and not computed: parameters, state, losses, in one plan.
  static void realize_recorded();

 protected:
  /// Errors: User for no parameters, or one that does not require gradients.
  Optimizer(std::vector<Tensor> parameters, double lr);
  /// Errors: User when no parameter has a gradient.
  void require_gradients() const;
  /// A zero tensor of state for each parameter.
  std::vector<Tensor> zeros_like_parameters() const;
  /// A parameter and its gradient in the dtype of the state, without their past.
  Tensor value(size_t i) const;
  Tensor gradient(size_t i) const;
  /// The learning rate where parameter `i` is.
  Tensor rate(size_t i) const { return lr_.to(parameters_[i].device()); }
  /// Numbers as data, in the widest dtype of the state.
  Tensor numbers(const std::vector<double>& values) const;

  std::vector<Tensor> parameters_;

 private:
  DType rate_dtype() const;
  double learning_rate_ = -1;
  Tensor lr_;
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
  void record_step();  ///< step() without computing it
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
  void record_step();  ///< step() without computing it
  void visit_fields(nn::StateVisitor& visitor) const {
    visitor.visit("mean, variance, correction", mean_, variance_, correction_);
  }

 protected:
  enum class Decay : uint8_t { Gradient, Parameter };
  Adam(std::vector<Tensor> parameters, const AdamOptions& options, Decay decay);
  /// Follows the moments of g; g divided by its deviation.
  Tensor direction(size_t i, const Tensor& g);
  const AdamOptions& options() const { return options_; }
  void record_correction();

 private:
  AdamOptions options_;
  Decay decay_;
  std::vector<Tensor> mean_, variance_;
  // 1 - beta^t for both betas, followed as an average of ones: near t = 1 the plain formula
  // cancels.
  Tensor correction_;
  Tensor betas_, gains_;  // (beta1, beta2) and what is left of 1
};

/// Adam whose weight decay is decoupled from the gradient. Loshchilov and Hutter 2019.
class PLUGRAD_API AdamW : public Adam {
 public:
  AdamW(std::vector<Tensor> parameters, AdamOptions options = {.weight_decay = 0.01});
};

struct LAMBOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.0;
};
/// Adam's direction plus the decayed parameter, scaled to the length of the parameter (1 where
/// either is zero). You et al. 2020.
class PLUGRAD_API LAMB : public Adam {
 public:
  LAMB(std::vector<Tensor> parameters, const LAMBOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< step() without computing it
};

struct MuonOptions {
  double lr = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;  ///< shrinks the parameter, times the learning rate
  int64_t iterations = 5;     ///< of Newton and Schulz
  std::array<double, 3> coefficients = {3.4445, -4.775, 2.0315};
};
/// Averages gradients, makes their singular values about 1, and steps by that times
/// sqrt(max(1, rows / columns)). For weights of hidden layers: parameters of more than two axes
/// count as matrices of size(0) rows. Jordan et al. 2024.
class PLUGRAD_API Muon : public Optimizer {
 public:
  /// Errors: User for a parameter with fewer than two axes.
  Muon(std::vector<Tensor> parameters, const MuonOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< step() without computing it
  void visit_fields(nn::StateVisitor& visitor) const { visitor.visit("velocity", velocity_); }

 private:
  MuonOptions options_;
  std::vector<Tensor> velocity_;
};

/// Several optimisers that step together, in one plan: parameters that want other options, or
/// another method.
///   optim::OptimizerGroup opt(optim::Muon(matrices), optim::AdamW(others, {.lr = 3e-4}));
template <class... Members>
class OptimizerGroup {
 public:
  explicit OptimizerGroup(Members... members) : members_(std::move(members)...) {}
  template <size_t i>
  auto& get() {
    return std::get<i>(members_);
  }
  void zero_grad() {
    each([](auto& member, size_t) { member.zero_grad(); });
  }
  /// Members without gradients stay as they are.
  void step() {
    each([](auto& member, size_t) {
      if (member.has_gradients()) member.record_step();
    });
    Optimizer::realize_recorded();
  }
  /// The state of member i is named "i.…".
  void visit_fields(nn::StateVisitor& visitor) const {
    size_t i = 0;
    std::apply([&](const auto&... member) { (visitor.field(std::to_string(i++), member), ...); },
               members_);
  }

 private:
  template <class Call>
  void each(Call call) {
    size_t i = 0;
    std::apply([&](auto&... member) { (call(member, i++), ...); }, members_);
  }
  std::tuple<Members...> members_;
};

/// Scales the gradients so that all together have a norm of at most `max_norm`, and returns the
/// norm that they had, lazily: f32, or f64 with an f64 parameter. `order` may be infinity (the
/// largest magnitude). A norm that is no number makes every gradient NaN. As in PyTorch, parameters
/// without a gradient are left out: before backward() the norm is 0 and nothing changes. Errors:
/// User for a negative bound or an order below 1. Pascanu et al. 2013.
PLUGRAD_API Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                                  double order = 2.0);
/// Clamps every element of every gradient that is there to ±bound. Errors: User for a negative
/// bound.
PLUGRAD_API void clip_grad_value(const std::vector<Tensor>& parameters, double bound);

}  // namespace plugrad::optim
