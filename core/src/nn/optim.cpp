// Optimisers: each records the next values of its tensors and realises them in one plan.
#include "plugrad/optim.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "engine/recording/recorded_functions.h"
#include "engine/session.h"
#include "nn/optim_state.h"
#include "plugrad/functional.h"
#include "plugrad/linalg.h"
#include "tensor/handles.h"

namespace plugrad::optim {
namespace {

/// Errors: User unless the option is finite and not negative.
void require_from_zero(std::string_view optimizer, std::string_view option, double value) {
  require(std::isfinite(value) && value >= 0, "[{}] {} is {}; it must be a number from 0 on",
          optimizer, option, value);
}

bool is_half(const Tensor& parameter) {
  return parameter.dtype() == DType::F16 || parameter.dtype() == DType::BF16;
}

Tensor norm(const Tensor& x) {
  return x.square().sum().sqrt();
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr, bool master)
    : parameters_(std::move(parameters)) {
  require(!parameters_.empty(), "[optim] there are no parameters; pass nn::parameters(net)");
  for (const Tensor& p : parameters_)
    require(p.requires_grad(),
            "[optim] a parameter {} does not require gradients; call requires_grad_() on it",
            to_string(p.shape()));
  for (size_t i = 1; i < parameters_.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      require(tensor::state_of(parameters_[i]) != tensor::state_of(parameters_[j]),
              "[optim] parameter {}, of shape {}, is given twice", i,
              to_string(parameters_[i].shape()));
  set_learning_rate(lr);
  // Realises initial values in plans of their own, so that the first step has the graph of all
  // later steps.
  Tensor::realize(parameters_);
  if (master && std::ranges::any_of(parameters_, is_half)) masters_ = zeros_like_parameters();
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.zero_grad();
}

void Optimizer::set_learning_rate(double lr) {
  require(std::isfinite(lr) && lr >= 0,
          "[optim] the learning rate is {}; it must be a number from 0 on", lr);
  if (lr == learning_rate_) return;
  const Tensor rate = numbers({lr}).reshape({});
  if (rate.is_sharded())  // a value that no function records, so that ranks could differ in it
    engine::RecordedFunctions::of_this_thread().add(
        "set_learning_rate", std::bit_cast<uint64_t>(lr), rate.dtype(), {}, {});
  if (lr_.defined())
    lr_.assign(rate);  // a jitted step reads this tensor, so it must not be replaced
  else
    lr_ = rate;
  learning_rate_ = lr;
}

bool Optimizer::has_gradients() const {
  return std::ranges::any_of(parameters_, [](const Tensor& p) { return p.grad().defined(); });
}

void Optimizer::require_gradients() const {
  require(has_gradients(),
          "[optim] no parameter has a gradient; call loss.backward() before step()");
}

DType Optimizer::rate_dtype() const {
  const bool has_f64 = std::ranges::any_of(
      parameters_, [](const Tensor& p) { return state_dtype(p) == DType::F64; });
  return has_f64 ? DType::F64 : DType::F32;
}

Tensor Optimizer::numbers(const std::vector<double>& values) const {
  const std::string device = parameters_.front().device();
  const Tensor tensor =
      rate_dtype() == DType::F64
          ? Tensor::from(values, device)
          : Tensor::from(std::vector<float>(values.begin(), values.end()), device);
  // On a mesh it is a copy, which each step would repeat.
  return tensor.is_sharded() ? tensor.realize() : tensor;
}

Tensor Optimizer::value(size_t i) const {
  const Tensor rounded = as_state(i, parameters_[i].detach());
  const Tensor value = rounded.cast(state_dtype(parameters_[i]));
  if (masters_.empty() || !is_half(parameters_[i])) return value;
  // Elsewhere the parameter is new, or something else has assigned it.
  return where(masters_[i].cast(rounded.dtype()) == rounded, masters_[i], value);
}

void Optimizer::update(size_t i, const Tensor& next) {
  if (!masters_.empty() && is_half(parameters_[i])) masters_[i].assign(next);
  parameters_[i].assign(next);
}

Tensor Optimizer::gradient(size_t i) const {
  return as_state(i, parameters_[i].grad().detach()).cast(state_dtype(parameters_[i]));
}

void Optimizer::realize_recorded() {
  engine::Session::current().step_realize();
}

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer(std::move(parameters), options.lr, options.master), options_(options) {
  require_from_zero("SGD", "momentum", options.momentum);
  require_from_zero("SGD", "weight_decay", options.weight_decay);
  require(!options.nesterov || options.momentum > 0, "[SGD] nesterov needs momentum, which is {}",
          options.momentum);
  if (options.momentum != 0) velocity_ = zeros_like_parameters();
}

void SGD::step() {
  require_gradients();
  record_step();
  realize_recorded();
}

void SGD::record_step() {
  const engine::Session::StepScope scope;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    Tensor g = gradient(i);
    if (options_.weight_decay != 0) g = g + value(i) * options_.weight_decay;
    if (options_.momentum != 0) {
      velocity_[i].assign(velocity_[i] * options_.momentum + g);
      g = options_.nesterov ? g + velocity_[i] * options_.momentum : velocity_[i];
    }
    update(i, value(i) - g * rate(i));
  }
}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, Decay::Gradient) {}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options, Decay decay)
    : Optimizer(std::move(parameters), options.lr, options.master),
      options_(options),
      decay_(decay) {
  require_from_zero("Adam", "eps", options.eps);
  require_from_zero("Adam", "weight_decay", options.weight_decay);
  for (double beta : {options.beta1, options.beta2})
    require(beta >= 0 && beta < 1, "[Adam] a beta is {}; both must be in [0, 1)", beta);
  mean_ = zeros_like_parameters();
  variance_ = zeros_like_parameters();
  betas_ = numbers({options.beta1, options.beta2});
  gains_ = numbers({1 - options.beta1, 1 - options.beta2});
  correction_ = numbers({0, 0});
}

void Adam::step() {
  require_gradients();
  record_step();
  realize_recorded();
}

void Adam::record_correction() {
  const std::string device = correction_.device();  // nn::shard may have moved it
  correction_.assign(correction_ * betas_.to(device) + gains_.to(device));
}

Tensor Adam::direction(size_t i, const Tensor& g) {
  mean_[i].assign(mean_[i] * options_.beta1 + g * (1 - options_.beta1));
  variance_[i].assign(variance_[i] * options_.beta2 + g * g * (1 - options_.beta2));
  const Tensor correction = correction_.to(parameters_[i].device());
  const Tensor m = mean_[i] / correction[0], v = variance_[i] / correction[1];
  return m / (v.sqrt() + options_.eps);
}

void Adam::record_step() {
  const engine::Session::StepScope scope;
  record_correction();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    Tensor p = value(i), g = gradient(i);
    if (options_.weight_decay != 0) {
      if (decay_ == Decay::Parameter)
        p = p - p * rate(i) * options_.weight_decay;
      else
        g = g + p * options_.weight_decay;
    }
    update(i, p - direction(i, g) * rate(i));
  }
}

AdamW::AdamW(std::vector<Tensor> parameters, AdamOptions options)
    : Adam(std::move(parameters), options, Decay::Parameter) {}

LAMB::LAMB(std::vector<Tensor> parameters, const LAMBOptions& o)
    : Adam(std::move(parameters), {o.lr, o.beta1, o.beta2, o.eps, o.weight_decay, o.master},
           Decay::Parameter) {}

void LAMB::step() {
  require_gradients();
  record_step();
  realize_recorded();
}

void LAMB::record_step() {
  const engine::Session::StepScope scope;
  record_correction();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    const Tensor p = value(i);
    Tensor r = direction(i, gradient(i));
    if (options().weight_decay != 0) r = r + p * options().weight_decay;
    const Tensor length = norm(p), step = norm(r);
    const Tensor trust = where((length > 0) & (step > 0), length / step, 1.0);
    update(i, p - r * (trust * rate(i)));
  }
}

Muon::Muon(std::vector<Tensor> parameters, const MuonOptions& options)
    : Optimizer(std::move(parameters), options.lr, options.master), options_(options) {
  for (const Tensor& p : parameters_)
    require(p.ndim() >= 2,
            "[Muon] a parameter {} is no matrix; give biases and scales to Adam, in an "
            "OptimizerGroup",
            to_string(p.shape()));
  require(options.momentum >= 0 && options.momentum < 1,
          "[Muon] the momentum is {}; it must be in [0, 1)", options.momentum);
  velocity_ = zeros_like_parameters();
}

void Muon::step() {
  require_gradients();
  record_step();
  realize_recorded();
}

void Muon::record_step() {
  const engine::Session::StepScope scope;
  const std::vector<double> coefficients(options_.coefficients.begin(),
                                         options_.coefficients.end());
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    const double m = options_.momentum;
    const Tensor g = gradient(i);
    velocity_[i].assign(velocity_[i] * m + g * (1 - m));
    const Tensor along = options_.nesterov ? velocity_[i] * m + g * (1 - m) : velocity_[i];
    const Tensor matrix = along.flatten(1);
    const Tensor even = newton_schulz(matrix, options_.iterations, coefficients);
    const auto rows = static_cast<double>(matrix.size(0));
    const auto columns = static_cast<double>(std::max<int64_t>(matrix.size(1), 1));
    const double scale = std::sqrt(std::max(1.0, rows / columns));
    const Tensor p = value(i);
    update(i, p - p * rate(i) * options_.weight_decay - even.reshape(p.shape()) * scale * rate(i));
  }
}

}  // namespace plugrad::optim
