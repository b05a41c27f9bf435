// Turns backward() and gradient() into calls of autodiff/, and stores gradients in marked leaves.
#include <algorithm>
#include <utility>

#include "autodiff/gradient.h"
#include "base/binding.h"
#include "base/trace/call_site.h"
#include "base/trace/trace.h"
#include "jit/trace.h"
#include "plugrad/no_grad.h"
#include "tensor/function_gradient.h"
#include "tensor/handles.h"
#include "tensor/record.h"

namespace plugrad {

using tensor::Recorder;

namespace {

thread_local bool records_gradients = true;

/// The gradient of the loss itself: 1, or `given`, which must have the loss's shape.
Id seed_of(Recorder& r, Id loss, const Tensor& given) {
  const Shape shape = r.shape(loss);
  require_type(is_float(r.dtype(loss)), "[{}] the loss is {}; only floats have gradients",
               r.function(), name_of(strong(r.dtype(loss))));
  if (!given.defined()) {
    require(element_count(shape) == 1,
            "[{}] the loss has shape {}, not one element; reduce it with mean() or sum(), or give "
            "the gradient of each element",
            r.function(), to_string(shape));
    return r.graph().constant(r.dtype(loss), int64_t{1});
  }
  const Id seed = r.use(given);
  require(r.shape(seed) == shape && (is_float(r.dtype(seed)) || r.dtype(seed) == DType::Index),
          "[{}] a gradient {} of shape {} is given for a loss of shape {}; it must be a float of "
          "the loss's shape",
          r.function(), name_of(given.dtype()), to_string(given.shape()), to_string(shape));
  return r.cast(seed, r.dtype(loss));
}

std::vector<Id> gradients_of(Recorder& r, Id loss, const Tensor& given,
                             std::span<const Id> targets) {
  const Id seed = seed_of(r, loss, given);
  autodiff::Context context{r.graph(), r.session().shapes(), r.session().devices(),
                            tensor::function_gradient(r), r.extents()};
  if (tracing() || has_places())
    context.differentiated = [&](Id node, Id first) {
      engine::Session& session = r.session();
      session.note_place(first, session.place(node));
      if (tracing()) session.note_operation(first, trace::derivative_of(session.operation(node)));
    };
  return autodiff::gradient(context, loss, seed, targets);
}

/// Hint for a loss that reaches no marked leaf: lists marked tensors with a pending assignment.
std::string assignment_advice(std::span<engine::TensorState* const> leaves) {
  std::string shapes;
  engine::Session& session = engine::Session::current();
  for (const engine::TensorState* leaf : leaves)
    if (leaf->pending)
      shapes += (shapes.empty() ? "" : ", ") + to_string(Shape(session.shape(leaf->node).begin(),
                                                               session.shape(leaf->node).end()));
  if (shapes.empty())
    return ", or before a marked tensor becomes another by an assignment (w = w - …)";
  return fmt::format(
      "; a marked tensor of shape {} was assigned to (-=, assign) after the loss was recorded: "
      "call backward() before the assignment",
      shapes);
}

}  // namespace

NoGradScope::NoGradScope() : outer_(std::exchange(records_gradients, false)) {}
NoGradScope::~NoGradScope() {
  records_gradients = outer_;
}
bool is_grad_enabled() {
  return records_gradients;
}

Tensor& Tensor::requires_grad_(bool on) {
  Recorder r("requires_grad_");
  const Id node = r.use(*this);
  require_type(!on || is_float(r.dtype(node)),
               "[requires_grad_] the tensor is {}; only floats have gradients", name_of(dtype()));
  // Equal expressions share one node, but two leaves must not share a gradient.
  if (on && !state_->requires_grad && r.graph()[node].op != Op::Buffer) {
    const Id stored = r.cast(node, strong(r.dtype(node)));
    r.session().denote(
        *state_, r.graph().add(Op::Contiguous, r.dtype(stored), {stored}, tensor::new_identity()));
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
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active()) trace->use_gradient(*state_);
  return state_->grad ? Tensor(state_->grad) : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) {
  Recorder r("set_grad");
  r.use(*this);
  require(!gradient.defined() || gradient.shape() == shape(),
          "[set_grad] {} is not the shape {} of the tensor", to_string(gradient.shape()),
          to_string(shape()));
  if (gradient.defined()) r.use(gradient);
  if (gradient.defined() && state_->grad)
    tensor::state_of(gradient)->backward = state_->grad->backward;
  state_->grad = tensor::state_of(gradient);
}

void Tensor::zero_grad() {
  Recorder r("zero_grad");
  r.use(*this);
  state_->grad = nullptr;
}

void Tensor::backward(bool retain_graph) const {
  backward(Tensor(), retain_graph);
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  Recorder r("backward");
  jit_detail::JitTrace* const trace = jit_detail::JitTrace::active();
  if (trace) trace->take_gradients("backward");
  const Id loss = r.use(*this);
  require(!state_->release_tape,
          "[backward] an earlier backward() released the graph of this loss; call "
          "backward(true) first when it is needed again");
  const std::vector<engine::TensorState*> leaves = r.session().marked_states();
  std::vector<Id> targets;
  for (const engine::TensorState* leaf : leaves) targets.push_back(leaf->node);
  const std::vector<Id> gradients = gradients_of(r, loss, gradient, targets);
  require(std::ranges::any_of(gradients, [](Id id) { return id != kNoId; }),
          "[backward] the loss depends on no tensor that is marked with requires_grad_(); mark "
          "leaves before what depends on them is realised, and call backward() before the graph is "
          "released by another{}",
          assignment_advice(leaves));
  const uint64_t call = tensor::new_identity();
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (gradients[i] == kNoId) continue;
    // so that no gradient flows through it to the leaves
    Id sum = r.graph().unary(Op::Detach, gradients[i]);
    if (trace) trace->use_gradient(*leaves[i]);
    if (leaves[i]->grad) sum = r.graph().binary(Op::Add, leaves[i]->grad->node, sum);
    leaves[i]->grad = r.session().make(sum, leaves[i]->device);
    leaves[i]->grad->backward = call;
    leaves[i]->grad->recorded = leaves[i]->recorded;
  }
  r.session().note_loss(state_);
  if (!retain_graph) r.session().release_tape(*state_);
}

std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets,
                             const Tensor& seed) {
  Recorder r("gradient");
  if (jit_detail::JitTrace* trace = jit_detail::JitTrace::active())
    trace->take_gradients("gradient");
  const Id node = r.use(loss);
  std::vector<Id> ids;
  for (const Tensor& target : targets) {
    Recorder own("gradient");  // the target may be on another device than the loss
    ids.push_back(own.use(target));
    require_type(is_float(r.dtype(ids.back())),
                 "[gradient] a target is {}; only floats have gradients", name_of(target.dtype()));
  }
  const std::vector<Id> found = gradients_of(r, node, seed, ids);
  std::vector<Tensor> results;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kNoId && targets[i].numel() == 0) {  // the graph drops terms without elements
      results.push_back(targets[i].zeros_like());
      continue;
    }
    // An error and not zeros: realising a tensor between the target and the loss may have dropped
    // the history.
    require(found[i] != kNoId,
            "[gradient] the loss does not depend on target {}, of shape {}. A value that was "
            "realised or read (realize(), item(), to_vector(), printing) has forgotten how it was "
            "computed: call gradient() before that, or requires_grad_() on the target before the "
            "loss is computed",
            i, to_string(targets[i].shape()));
    Recorder own("gradient");
    own.use(targets[i]);
    results.push_back(own.done(found[i]));
  }
  return results;
}

}  // namespace plugrad
