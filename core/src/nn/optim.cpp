// The optimisers: each records the next values of its tensors and realises them in one plan.
#include "plugrad/optim.h"

#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"
#include "engine/session.h"

namespace plugrad::optim {
namespace {

std::vector<Tensor> joined(const std::vector<const std::vector<Tensor>*>& lists) {
  std::vector<Tensor> all;
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

// A buffer of its own: equal constants would be one node until the first step writes them, and that step a
// graph of its own.
Tensor zeros(const Shape& shape, DType dtype, const std::string& device) {
  auto count = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  std::vector<std::byte> bytes(static_cast<size_t>(count) * size_of(dtype));
  return Tensor::from_bytes(bytes, shape, dtype, device);
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, double lr) : parameters_(std::move(parameters)) {
  require(!parameters_.empty(), "[optim] there are no parameters; pass nn::parameters(net)");
  for (const Tensor& p : parameters_)
    require(p.requires_grad(), "[optim] a parameter {} does not require gradients; call requires_grad_() on it",
            to_string(p.shape()));
  set_learning_rate(lr);
  // Initial values have plans of their own, so that the first step has the same graph as all others.
  Tensor::realize(parameters_);
}

void Optimizer::zero_grad() {
  for (Tensor& p : parameters_) p.zero_grad();
}

void Optimizer::set_learning_rate(double lr) {
  require(std::isfinite(lr) && lr >= 0, "[optim] the learning rate is {}; it must be a number from 0 on", lr);
  learning_rate_ = lr;
  lr_ = Tensor::from<float>({static_cast<float>(lr)}, parameters_.front().device());
}

void Optimizer::require_gradients() const {
  for (const Tensor& p : parameters_)
    if (p.grad().defined()) return;
  fail(ErrorKind::User, "[optim] no parameter has a gradient; call loss.backward() before step()");
}

std::vector<Tensor> Optimizer::zeros_like_parameters() const {
  std::vector<Tensor> tensors;
  for (const Tensor& p : parameters_) tensors.push_back(zeros(p.shape(), p.dtype(), p.device()));
  return tensors;
}

void Optimizer::realize_step(const std::vector<const std::vector<Tensor>*>& state) const {
  std::vector<const std::vector<Tensor>*> lists = state;
  lists.push_back(&parameters_);
  std::vector<engine::TensorState*> states;
  for (const Tensor& tensor : joined(lists)) states.push_back(tensor.state().get());
  engine::Session::current().step_realize(states);
}

SGD::SGD(std::vector<Tensor> parameters, const SGDOptions& options)
    : Optimizer(std::move(parameters), options.lr), options_(options) {
  require(!options.nesterov || options.momentum > 0, "[SGD] nesterov needs momentum, which is {}", options.momentum);
  if (options.momentum != 0) velocity_ = zeros_like_parameters();
}

void SGD::step() {
  require_gradients();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    Tensor& p = parameters_[i];
    if (!p.grad().defined()) continue;
    Tensor g = p.grad().detach();
    if (options_.weight_decay != 0) g = g + p.detach() * options_.weight_decay;
    if (options_.momentum != 0) {
      velocity_[i].assign(velocity_[i] * options_.momentum + g);
      g = options_.nesterov ? g + velocity_[i] * options_.momentum : velocity_[i];
    }
    p.assign(p.detach() - g * lr_);
  }
  realize_step({&velocity_});
}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options) : Adam(std::move(parameters), options, false) {}

Adam::Adam(std::vector<Tensor> parameters, const AdamOptions& options, bool decoupled)
    : Optimizer(std::move(parameters), options.lr), options_(options), decoupled_(decoupled) {
  for (double beta : {options.beta1, options.beta2})
    require(beta >= 0 && beta < 1, "[Adam] a beta is {}; both must be in [0, 1)", beta);
  mean_ = zeros_like_parameters();
  variance_ = zeros_like_parameters();
  const std::string device = parameters_.front().device();
  betas_ = Tensor::from<float>({static_cast<float>(options.beta1), static_cast<float>(options.beta2)}, device);
  gains_ = Tensor::from<float>({static_cast<float>(1 - options.beta1), static_cast<float>(1 - options.beta2)}, device);
  correction_ = {zeros({2}, DType::F32, device)};
}

void Adam::step() {
  require_gradients();
  correction_[0].assign(correction_[0] * betas_ + gains_);
  for (size_t i = 0; i < parameters_.size(); ++i)
    if (parameters_[i].grad().defined()) record_update(i);
  realize_step({&mean_, &variance_, &correction_});
}

void Adam::record_update(size_t i) {
  Tensor& p = parameters_[i];
  Tensor value = p.detach(), g = p.grad().detach();
  if (decoupled_)
    value = value - value * lr_ * options_.weight_decay;
  else if (options_.weight_decay != 0)
    g = g + value * options_.weight_decay;
  mean_[i].assign(mean_[i] * options_.beta1 + g * (1 - options_.beta1));
  variance_[i].assign(variance_[i] * options_.beta2 + g * g * (1 - options_.beta2));
  Tensor m = mean_[i] / correction_[0][0], v = variance_[i] / correction_[0][1];
  p.assign(value - m / (v.sqrt() + options_.eps) * lr_);
}

AdamW::AdamW(std::vector<Tensor> parameters, AdamOptions options) : Adam(std::move(parameters), options, true) {}

}  // namespace plugrad::optim
