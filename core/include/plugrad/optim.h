/// Optimisers: they update parameters with their gradients.
///
///   optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
///   opt.zero_grad();  loss.backward();  opt.step();
///
/// nn::save and nn::load accept an optimiser like a module. The saved state does not contain the
/// options, nor the learning rate.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "plugrad/learning_rate.h"
#include "plugrad/nn/state.h"
#include "plugrad/tensor.h"

namespace plugrad::optim {

/// Base of the optimisers. All state is in tensors, so that every step records the same graph; it
/// is f64 for f64 parameters and f32 for all others. With the option `master`, f16 and bf16
/// parameters have a copy in f32 to which steps are added, as steps that are small beside a
/// parameter would leave its rounded value as it is; a parameter that anything else changes takes
/// its copy along. Micikevicius et al. 2018.
class PLUGRAD_API Optimizer {
 public:
  void zero_grad();
  const std::vector<Tensor>& parameters() const { return parameters_; }
  double learning_rate() const { return learning_rate_; }
  /// Takes effect at the next step, without new planning or compilation. Errors: User unless finite
  /// and >= 0.
  void set_learning_rate(double lr);
  bool has_gradients() const;  ///< whether any parameter has one
  /// Cuts the state of each parameter on a mesh along `axes` ("data", "data+model") of the mesh, in
  /// the first dimension that the parameter does not have cut: each device then has, and updates, a
  /// part. A step moves gradients to these parts and the new values back to where the parameter
  /// lies; results do not change. State of parameters without such a dimension, or cut along these
  /// axes, stays as it is. nn::shard(optimizer, mesh, rules) chooses by name. Errors: User for an
  /// unknown axis, when no parameter is on a mesh, and in a jitted function; then nothing is moved.
  /// Rajbhandari et al. 2020 (ZeRO).
  void shard_state(std::string_view axes);
  /// Computes all recorded values in one plan: parameters, state, losses.
  static void realize_recorded();

 protected:
  /// Errors: User for no parameters, or one that does not require gradients.
  Optimizer(std::vector<Tensor> parameters, double lr, bool master);
  /// Errors: User when no parameter has a gradient.
  void require_gradients() const;
  /// A state tensor of zeros for each parameter, which lies as the parameter.
  std::vector<Tensor> zeros_like_parameters();
  /// A parameter and its gradient in the dtype of the state, without autograd history; on a mesh
  /// they lie as the state.
  Tensor value(size_t i) const;
  Tensor gradient(size_t i) const;
  /// Records the next value of parameter `i`, in the dtype of the state.
  void update(size_t i, const Tensor& next);
  void visit_masters(nn::StateVisitor& visitor) const { visitor.visit("master", masters_); }
  /// The learning rate on the device of parameter `i`.
  Tensor rate(size_t i) const { return lr_.to(parameters_[i].device()); }
  /// A tensor of these numbers, in the widest dtype of the state.
  Tensor numbers(const std::vector<double>& values) const;

  std::vector<Tensor> parameters_;

 private:
  DType rate_dtype() const;
  Tensor as_state(size_t i, const Tensor& x) const;
  double learning_rate_ = -1;
  Tensor lr_;
  std::shared_ptr<const void> zeros_;  // on the host: the first value of every state
  std::vector<Tensor> masters_;  // of each parameter, 0 where it needs none; empty if none does
  std::vector<Tensor> states_;   // handles of the state: one or more for each parameter, in turns
};

struct SGDOptions {
  double lr = 1e-3;
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;  ///< times the parameter, added to the gradient
  bool master = true;         ///< f32 copies of f16 and bf16 parameters
};
/// b = momentum b + g; p -= lr b (or lr (g + momentum b) with nesterov). Sutskever et al. 2013.
class PLUGRAD_API SGD : public Optimizer {
 public:
  /// Errors: User for nesterov without momentum.
  SGD(std::vector<Tensor> parameters, const SGDOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< records step() without running it
  void visit_fields(nn::StateVisitor& visitor) const {
    visitor.visit("velocity", velocity_);
    visit_masters(visitor);
  }

 private:
  SGDOptions options_;
  std::vector<Tensor> velocity_;
};

struct AdamOptions {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  /// added to the gradient; in AdamW: times lr, shrinks the parameter
  double weight_decay = 0.0;
  bool master = true;  ///< f32 copies of f16 and bf16 parameters
};
/// Kingma and Ba 2015.
class PLUGRAD_API Adam : public Optimizer {
 public:
  Adam(std::vector<Tensor> parameters, const AdamOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< records step() without running it
  void visit_fields(nn::StateVisitor& visitor) const {
    visitor.visit("mean, variance, correction", mean_, variance_, correction_);
    visit_masters(visitor);
  }

 protected:
  enum class Decay : uint8_t { Gradient, Parameter };
  Adam(std::vector<Tensor> parameters, const AdamOptions& options, Decay decay);
  /// Updates the moments with g; returns the mean over the deviation.
  Tensor direction(size_t i, const Tensor& g);
  const AdamOptions& options() const { return options_; }
  void record_correction();

 private:
  AdamOptions options_;
  Decay decay_;
  std::vector<Tensor> mean_, variance_;
  // 1 - beta^t for both betas, updated as a moving average of ones, because the closed formula
  // cancels at small t.
  Tensor correction_;
  Tensor betas_, gains_;  // (beta1, beta2) and (1 - beta1, 1 - beta2)
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
  bool master = true;  ///< f32 copies of f16 and bf16 parameters
};
/// Adam's direction plus the weight decay, scaled by the norm of the parameter over the norm of the
/// update (by 1 where either is zero). You et al. 2020.
class PLUGRAD_API LAMB : public Adam {
 public:
  LAMB(std::vector<Tensor> parameters, const LAMBOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< records step() without running it
};

struct MuonOptions {
  double lr = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  /// times the learning rate and the parameter, subtracted from the parameter
  double weight_decay = 0.1;
  int64_t iterations = 5;  ///< of the Newton-Schulz iteration
  std::array<double, 3> coefficients = {3.4445, -4.775, 2.0315};
  bool master = true;  ///< f32 copies of f16 and bf16 parameters
};
/// Averages gradients, orthogonalises them (singular values near 1), and steps by the result times
/// sqrt(max(1, rows / columns)). For weights of hidden layers; a parameter of more than two axes is
/// treated as a matrix with size(0) rows. Jordan et al. 2024.
class PLUGRAD_API Muon : public Optimizer {
 public:
  /// Errors: User for a parameter with fewer than two axes.
  Muon(std::vector<Tensor> parameters, const MuonOptions& options = {});
  /// Errors: User before a backward(); Device from the plugin.
  void step();
  void record_step();  ///< records step() without running it
  void visit_fields(nn::StateVisitor& visitor) const {
    visitor.visit("velocity", velocity_);
    visit_masters(visitor);
  }

 private:
  MuonOptions options_;
  std::vector<Tensor> velocity_;
};

/// Several optimisers that step together, in one plan, e.g. with other options or another method
/// for some parameters.
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
  /// Skips members without gradients.
  void step() {
    each([](auto& member, size_t) {
      if (member.has_gradients()) member.record_step();
    });
    Optimizer::realize_recorded();
  }
  /// Optimizer::shard_state of every member.
  void shard_state(std::string_view axes) {
    each([&](auto& member, size_t) { member.shard_state(axes); });
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

/// Scales all gradients by one factor so that their joint norm is at most `max_norm`. Returns the
/// norm before scaling, lazily: f32, or f64 with an f64 parameter. `order` may be infinity (the
/// largest magnitude). A NaN norm makes every gradient NaN. As in PyTorch, parameters without a
/// gradient are skipped: before backward() the norm is 0 and nothing changes. Errors: User for a
/// negative bound or an order below 1. Pascanu et al. 2013.
PLUGRAD_API Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm,
                                  double order = 2.0);
/// Clamps every element of every existing gradient to ±bound. Errors: User for a negative bound.
PLUGRAD_API void clip_grad_value(const std::vector<Tensor>& parameters, double bound);

}  // namespace plugrad::optim
