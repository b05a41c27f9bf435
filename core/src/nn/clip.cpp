// Clips gradients by their norm or their values.
#include <cmath>

#include "base/check.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/optim.h"
#include "tensor/handles.h"

namespace plugrad::optim {
namespace {

std::vector<Tensor> with_gradients(const std::vector<Tensor>& parameters) {
  std::vector<Tensor> found;
  for (const Tensor& p : parameters)
    if (p.grad().defined()) found.push_back(p);
  return found;
}

Tensor wide_gradient(const Tensor& parameter) {
  const Tensor g = parameter.grad().detach();
  return g.dtype() == DType::F64 ? g : g.cast(DType::F32);
}

}  // namespace

Tensor clip_grad_norm(const std::vector<Tensor>& parameters, double max_norm, double order) {
  require(max_norm >= 0, "[clip_grad_norm] the bound is {}; it must be 0 or more", max_norm);
  require(order >= 1, "[clip_grad_norm] the order is {}; it must be 1 or more", order);
  const bool largest = std::isinf(order);
  Tensor total;
  for (const Tensor& p : with_gradients(parameters)) {
    const Tensor g = wide_gradient(p);
    const Tensor part = largest      ? g.abs().max()
                        : order == 2 ? g.square().sum()
                                     : g.abs().pow(order).sum();
    if (!total.defined()) {
      total = part;
      continue;
    }
    const Tensor here = part.to(total.device());
    total = largest ? total.maximum(here) : total + here;
  }
  if (!total.defined()) return Tensor::zeros({});
  if (!largest) total = order == 2 ? total.sqrt() : total.pow(1 / order);
  const Tensor scale = (max_norm / (total + 1e-6)).minimum(1.0);
  for (Tensor p : with_gradients(parameters))
    p.set_grad((wide_gradient(p) * scale.to(p.device())).cast(p.grad().dtype()));
  // Computed in the plan of the step, like the loss: reading it then needs no plan of its own.
  engine::Session::current().note_loss(tensor::state_of(total));
  return total;
}

void clip_grad_value(const std::vector<Tensor>& parameters, double bound) {
  require(bound >= 0, "[clip_grad_value] the bound is {}; it must be 0 or more", bound);
  for (Tensor p : with_gradients(parameters)) p.set_grad(p.grad().detach().clamp(-bound, bound));
}

}  // namespace plugrad::optim
