// Turns backward() and gradient() into calls of autodiff/, and stores gradients in marked leaves.
#include <algorithm>
#include <unordered_set>
#include <utility>

#include "autodiff/gradient.h"
#include "ir/user.h"
#include "jit/trace.h"
#include "plugrad/no_grad.h"
#include "tensor/function_gradient.h"
#include "tensor/handles.h"
#include "tensor/lazy_text.h"
#include "tensor/record.h"
#include "tensor/write.h"

namespace plugrad {

using jit_detail::JitTrace;
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
            r.function(), tensor::lazy_text(shape));
    return r.graph().constant(r.dtype(loss), int64_t{1});
  }
  const Id seed = r.use(given);
  require(r.shape(seed) == shape && (is_float(r.dtype(seed)) || r.dtype(seed) == DType::Index),
          "[{}] a gradient {} of shape {} is given for a loss of shape {}; it must be a float of "
          "the loss's shape",
          r.function(), name_of(given.dtype()), tensor::lazy_text(given), tensor::lazy_text(shape));
  return r.cast(seed, r.dtype(loss));
}

/// The nodes of all targets in order, and the sum of the gradients of each target's nodes.
class Targets {
 public:
  void add(const engine::TensorState& state) {
    for (Id node : engine::Session::leaf_nodes(state)) nodes_.push_back(node);
    ends_.push_back(nodes_.size());
  }
  /// By target; kNoId where the loss does not depend on it.
  std::vector<Id> gradients(Recorder& r, autodiff::Context& context, Id loss, Id seed) const {
    const std::vector<Id> by_node = autodiff::gradient(context, loss, seed, nodes_);
    std::vector<Id> sums;
    size_t node = 0;
    for (const size_t end : ends_) {
      Id& sum = sums.emplace_back(kNoId);
      for (; node < end; ++node)
        if (by_node[node] != kNoId)
          sum = sum == kNoId ? by_node[node] : r.graph().binary(Op::Add, sum, by_node[node]);
    }
    return sums;
  }

  std::span<const Id> nodes() const { return nodes_; }

 private:
  std::vector<Id> nodes_;
  std::vector<size_t> ends_;  // by target
};

/// The name of a user's kernel without a gradient between the loss and a target; else empty.
std::string kernel_between(Recorder& r, Id loss, std::span<const Id> targets) {
  const Graph& g = r.graph();
  Reachable reachable;
  const std::vector<Id> nodes = reachable.from(g, std::span(&loss, 1));
  std::unordered_set<Id> depends(targets.begin(), targets.end()), with_gradient;
  for (Id id : nodes)
    if (g[id].op == Op::Function) with_gradient.insert(g.sources(id)[0]);
  for (Id id : nodes) {
    if (std::ranges::none_of(g.sources(id), [&](Id s) { return depends.contains(s); })) continue;
    depends.insert(id);
    if (g[id].op != Op::UserKernel || with_gradient.contains(id)) continue;
    const uint32_t kernel = UserKernelArg(g.arg_list(id)).kernel();
    if ((kernel & kLoopBit) == 0) return r.session().user_kernels()[kernel]->name;
  }
  return "";
}

/// Throws User if such a kernel is why a gradient is missing.
void require_no_kernel_between(Recorder& r, Id loss, std::span<const Id> targets) {
  const std::string kernel = kernel_between(r, loss, targets);
  require(kernel.empty(),
          "[{}] no gradient flows through the kernel {}, which the loss depends on: give the "
          "UserKernel a `backward`",
          r.function(), kernel);
}

}  // namespace

NoGradScope::NoGradScope() : outer_(std::exchange(records_gradients, false)) {}
NoGradScope::~NoGradScope() {
  records_gradients = outer_;
}
tensor::GradScope::GradScope() : outer_(std::exchange(records_gradients, true)) {}
tensor::GradScope::~GradScope() {
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
  // The gradient is that of what is recorded from now on, and of no other leaf: equal expressions
  // share one node.
  if (on && !state_->requires_grad) {
    Id own = r.session().second_buffer(node);
    if (own == kNoId) {
      const Id stored = r.cast(node, strong(r.dtype(node)));
      own = r.graph().add(Op::Contiguous, r.dtype(stored), {stored}, tensor::new_identity());
    }
    r.session().denote(*state_, own);
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
  if (JitTrace* trace = JitTrace::active()) trace->use_gradient(*state_);
  return state_->grad ? Tensor(state_->grad) : Tensor();
}

void Tensor::set_grad(const Tensor& gradient) {
  Recorder r("set_grad");
  r.use(*this);
  require(!gradient.defined() || gradient.shape() == shape(),
          "[set_grad] {} is not the shape {} of the tensor", tensor::lazy_text(gradient),
          tensor::lazy_text(*this));
  if (gradient.defined()) r.use(gradient);
  if (JitTrace* trace = JitTrace::active()) trace->replace_gradient(*state_);
  if (gradient.defined() && state_->grad)
    tensor::state_of(gradient)->backward = state_->grad->backward;
  state_->grad = tensor::state_of(gradient);
}

void Tensor::zero_grad() {
  Recorder r("zero_grad");
  r.use(*this);
  if (JitTrace* trace = JitTrace::active()) trace->replace_gradient(*state_);
  state_->grad = nullptr;
}

void Tensor::backward(bool retain_graph) const {
  backward(Tensor(), retain_graph);
}

void Tensor::backward(const Tensor& gradient, bool retain_graph) const {
  Recorder r("backward");
  JitTrace* const trace = JitTrace::active();
  if (trace) trace->take_gradients("backward");
  const Id loss = r.use(*this);
  const std::vector<engine::TensorState*> leaves = r.session().marked_states();
  Targets targets;
  for (const engine::TensorState* leaf : leaves) targets.add(*leaf);
  autodiff::Context context = tensor::gradient_context(r);
  context.is_tracked = [&](Id node) { return r.session().is_tracked(node); };
  const std::vector<Id> gradients = targets.gradients(r, context, loss, seed_of(r, loss, gradient));
  const bool is_any = std::ranges::any_of(gradients, [](Id id) { return id != kNoId; });
  if (!is_any) require_no_kernel_between(r, loss, targets.nodes());
  require(
      is_any,
      "[backward] the loss depends on no tensor that is marked with requires_grad_(); mark "
      "leaves before the loss is recorded from them, and call backward() before a marked tensor "
      "becomes another (w = w - …)");
  const uint64_t call = tensor::new_identity();
  std::vector<engine::StatePtr> sums(leaves.size());  // all are made before a leaf gets its own
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (gradients[i] == kNoId) continue;
    // so that no gradient flows through it to the leaves
    Id sum = r.graph().unary(Op::Detach, gradients[i]);
    if (trace) trace->use_gradient(*leaves[i]);
    if (leaves[i]->grad) sum = r.graph().binary(Op::Add, leaves[i]->grad->node, sum);
    sums[i] = r.session().make(sum, leaves[i]->device);
    sums[i]->backward = call;
    sums[i]->recorded = leaves[i]->recorded;
  }
  r.session().note_loss(state_);
  if (!retain_graph) r.session().end_tape(*state_);
  for (size_t i = 0; i < leaves.size(); ++i)  // needs no memory
    if (sums[i]) leaves[i]->grad = std::move(sums[i]);
}

std::vector<Tensor> gradient(const Tensor& loss, const std::vector<Tensor>& targets,
                             const Tensor& seed) {
  Recorder r("gradient");
  if (JitTrace* trace = JitTrace::active()) trace->take_gradients("gradient");
  const Id node = r.use(loss);
  Targets nodes;
  for (const Tensor& target : targets) {
    Recorder own("gradient");  // the target may be on another device than the loss
    require_type(is_float(r.dtype(own.use(target))),
                 "[gradient] a target is {}; only floats have gradients", name_of(target.dtype()));
    nodes.add(*tensor::state_of(target));
  }
  autodiff::Context context = tensor::gradient_context(r);
  const std::vector<Id> found = nodes.gradients(r, context, node, seed_of(r, node, seed));
  std::vector<Tensor> results;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == kNoId && targets[i].numel() == 0) {  // the graph drops terms without elements
      results.push_back(targets[i].zeros_like());
      continue;
    }
    if (found[i] == kNoId)
      require_no_kernel_between(r, node,
                                engine::Session::leaf_nodes(*tensor::state_of(targets[i])));
    // An error and not zeros: realising a tensor between the target and the loss may have dropped
    // the history.
    require(found[i] != kNoId,
            "[gradient] the loss does not depend on target {}, of shape {}. A value that was "
            "realised or read (realize(), item(), to_vector(), printing) has forgotten how it was "
            "computed: call gradient() before that, or requires_grad_() on the target before the "
            "loss is computed. Through detach(), and a UserKernel without `backward`, no gradient "
            "flows",
            i, tensor::lazy_text(targets[i].shape()));
    Recorder own("gradient");
    own.use(targets[i]);
    results.push_back(own.done(found[i]));
  }
  return results;
}

}  // namespace plugrad
