// Gradients of tensors: the marked leaves, backward() and the functional form, over gradient/.
#include "gradient/gradient.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

std::vector<Id> gradients_of(Recorder& r, Id loss, std::span<const Id> targets) {
  require(element_count(r.session().shape(loss)) == 1 && is_float(r.dtype(loss)),
          "[{}] the loss is {} of shape {}, not one float; reduce it with mean() or sum()",
          r.function(), name_of(strong(r.dtype(loss))), to_string(r.shape(loss)));
  autodiff::Context context{r.graph(), r.session().shapes(), r.session().devices()};
  const Id one = r.graph().constant(r.dtype(loss), int64_t{1});
  return autodiff::gradient(context, loss, one, targets);
}

}  // namespace

Tensor& Tensor::requires_grad_(bool on) {
  Recorder r("requires_grad_");
  const Id node = r.use(*this);
  require(!on || is_float(r.dtype(node)),
          "[requires_grad_] the tensor is {}; only floats have gradients", name_of(dtype()));
  // Equal expressions are one node, but two leaves must not share a gradient.
  if (on && !state_->requires_grad && r.graph()[node].op != Op::Buffer) {
    const Id stored = r.cast(node, strong(r.dtype(node)));
    state_->node = r.graph().add(Op::Contiguous, r.dtype(stored), {stored}, tensor::new_identity());
  }
  r.session().set_requires_grad(*state_, on);
  return *this;
}

bool Tensor::requires_grad() const {
  return defined() && state_->requires_grad;
}

Tensor Tensor::grad() const {
  Recorder r("grad");
  r.use(*this);
  return state_->grad ? Tensor(state_->grad) : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) {
  Recorder r("set_grad");
  r.use(*this);
  require(!gradient.defined() || gradient.shape() == shape(),
          "[set_grad] {} is not the shape {} of the tensor", to_string(gradient.shape()),
          to_string(shape()));
  state_->grad = gradient.state();
}

void Tensor::zero_grad() {
  Recorder r("zero_grad");
  r.use(*this);
  state_->grad = nullptr;
}

void Tensor::backward(bool retain_graph) const {
  Recorder r("backward");
  const Id loss = r.use(*this);
  const std::vector<engine::TensorState*> leaves = r.session().marked_states();
  std::vector<Id> targets;
  for (const engine::TensorState* leaf : leaves) targets.push_back(leaf->node);
  const std::vector<Id> gradients = gradients_of(r, loss, targets);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (gradients[i] == kNoId) continue;
    Id gradient =
        r.graph().unary(Op::Detach, gradients[i]);  // a value, not a function of the leaves
    if (leaves[i]->grad) gradient = r.graph().binary(Op::Add, leaves[i]->grad->node, gradient);
    leaves[i]->grad = r.session().make(gradient, leaves[i]->device);
  }
  r.session().note_loss(state_);
  if (!retain_graph) r.session().release_tape(*state_);
}

std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets) {
  Recorder r("gradient");
  const Id node = r.use(loss);
  std::vector<Id> ids;
  for (const Tensor& target : targets) {
    ids.push_back(r.use(target));
    require(is_float(r.dtype(ids.back())), "[gradient] a target is {}; only floats have gradients",
            name_of(target.dtype()));
  }
  const std::vector<Id> found = gradients_of(r, node, ids);
  std::vector<Tensor> results;
  for (size_t i = 0; i < found.size(); ++i) {
    // Not zeros: the loss may have been cut from the target when something between them was
    // realised.
    require(found[i] != kNoId,
            "[gradient] the loss does not depend on target {}, of shape {}; if something between "
            "them was realised, "
            "mark the target with requires_grad_() before that",
            i, to_string(targets[i].shape()));
    results.push_back(r.done(found[i]));
  }
  return results;
}

}  // namespace plugrad
