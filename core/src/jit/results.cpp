// Ends a recording with the effects of the call: its results, gradients and updates.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "jit/trace.h"

namespace plugrad::jit_detail {
namespace {

std::string listed(std::span<const std::vector<int64_t>> shapes) {
  std::string text;
  for (const auto& shape : shapes)
    text += fmt::format("{}({})", text.empty() ? "" : ", ", fmt::join(shape, ", "));
  return text;
}

}  // namespace

void JitTrace::take_gradients(std::string_view function) {
  recording_.takes_gradients = true;
  require(cut_.empty(),
          "[{}] in a jitted function: its arguments or captured tensors of shapes {} were computed "
          "of tensors that are marked with requires_grad_(), and gradients do not flow out of a "
          "jitted call; detach() them, or compute them inside of it",
          function, listed(cut_));
}

bool JitTrace::is_kept_gradient(const engine::TensorState& leaf) const {
  if (!leaf.grad || is_before(*leaf.grad)) return false;
  if (std::ranges::find(used_up_, leaf.grad.get()) == used_up_.end()) return true;
  const uint32_t tensor = tensor_of_.at(&leaf);  // gradients accumulate over calls
  return std::ranges::any_of(gradient_of_, [&](const auto& g) { return g.second == tensor; });
}

// Order: results, then tensors by first use. It is part of the plan's key, so it must not follow
// ids: nodes of constants alone may exist from an earlier call.
std::vector<engine::TensorState*> JitTrace::left_behind(const JitOutput& output) {
  std::vector<engine::TensorState*> left;
  for (const engine::StatePtr& state : output.tensors)
    if (state) left.push_back(state.get());
  for (const JitTensor& tensor : recording_.tensors)
    if (const engine::StatePtr leaf = tensor.state.lock(); leaf && is_kept_gradient(*leaf))
      left.push_back(leaf->grad.get());
  return left;
}

std::vector<JitCount> JitTrace::counts_of(Id node) {
  std::vector<JitCount> counts;
  if (!session_.is_counted(node)) return counts;
  const std::vector<Extent> extents = session_.extents_of(node);
  std::vector<engine::StatePtr> handles;
  for (const Extent& e : extents) handles.push_back(e.is_counted() ? handle(e.count, 0) : nullptr);
  for (uint32_t axis = 0; axis < extents.size(); ++axis)
    if (handles[axis])
      counts.push_back(
          {axis, number_of(session_.readable_value(*handles[axis])), extents[axis].least});
  return counts;
}

// The result for a state. A view of part of a value is copied: replays compute whole values.
JitResult JitTrace::result_of(engine::TensorState& state) {
  using Kind = JitResult::Kind;
  if (session_.constant_value(state.node) && !session_.is_counted(state.node))
    return {.kind = Kind::Constant, .constant = handle(state.node, state.device)};
  const auto base_of = [&] {
    Id base = state.node;
    while (!session_.state().values.find(base) && session_.shows_source(base))
      base = session_.graph().sources(base)[0];
    return base;
  };
  if (!session_.state().values.find(base_of())) {
    const Id node = state.node;
    session_.denote(state,
                    session_.graph().add(Op::Contiguous, session_.graph()[node].dtype, {node}));
    session_.realize(state);
  }
  const auto shape = session_.shape(state.node);
  return {.kind = Kind::Value,
          .number = number_of(session_.state().values.share(base_of())),
          .shape = {shape.begin(), shape.end()},
          .counts = counts_of(state.node)};
}

JitResult JitTrace::tensor_itself(engine::TensorState& state) {
  use(state);
  if (gradient_of_.contains(&state)) return result_of(state);
  return {.kind = JitResult::Kind::Tensor, .number = tensor_of_.at(&state)};
}

void JitTrace::note_gradients(uint32_t tensor, engine::TensorState& leaf) {
  const Seen& seen = seen_[seen_of_[tensor]];
  // One that was replaced by itself was replaced by another in other calls, unless it was used.
  const bool is_same = is_same_owner(seen.gradient, std::weak_ptr<engine::TensorState>(leaf.grad));
  if (is_same && (!replaced_.contains(&leaf) || gradient_of_.contains(leaf.grad.get()))) return;
  JitUpdate update{.tensor = tensor, .is_gradient = true};
  if (leaf.grad && is_before(*leaf.grad))
    update.to = tensor_itself(*leaf.grad);
  else if (is_kept_gradient(leaf))
    update.to = result_of(*leaf.grad);
  recording_.updates.push_back(std::move(update));
}

// Each tensor of the call has a value of its own, so an assignment to one does not show in another.
void JitTrace::require_no_overlap(uint32_t assigned) const {
  const engine::StatePtr one = recording_.tensors[assigned].state.lock();
  for (uint32_t tensor = 0; tensor < recording_.tensors.size(); ++tensor) {
    const engine::StatePtr other = recording_.tensors[tensor].state.lock();
    if (tensor == assigned || !other || !session_.may_overlap(*one, *other)) continue;
    fail(ErrorKind::User,
         "[jit] the function changes a tensor of shape ({}) and uses one of shape ({}), which may "
         "show some of the same elements; give it one of both, and take parts inside of the "
         "function",
         fmt::join(recording_.tensors[assigned].shape, ", "),
         fmt::join(recording_.tensors[tensor].shape, ", "));
  }
}

void JitTrace::note_updates() {
  for (uint32_t tensor = 0; tensor < recording_.tensors.size(); ++tensor) {
    const Seen& seen = seen_[seen_of_[tensor]];
    const engine::StatePtr state = seen.state.lock();
    if (!state) continue;
    if (state->node != seen.during->node) {
      require_no_overlap(tensor);
      recording_.updates.push_back({.tensor = tensor, .to = result_of(*state)});
    }
    note_gradients(tensor, *state);
  }
}

void JitTrace::note_results(const JitOutput& output) {
  for (size_t i = 0; i < output.tensors.size(); ++i) {
    const engine::StatePtr& state = output.tensors[i];
    const auto first = std::ranges::find(output.tensors, state) - output.tensors.begin();
    JitResult result;
    if (!state) {
      result.kind = JitResult::Kind::Undefined;
    } else if (static_cast<size_t>(first) < i) {
      result = {.kind = JitResult::Kind::Same, .number = static_cast<uint32_t>(first)};
    } else if (is_before(*state)) {
      result = tensor_itself(*state);
    } else {
      result = result_of(*state);
      if (!state->requires_grad) session_.cut_tape(*state);
    }
    recording_.results.push_back(std::move(result));
  }
}

std::vector<std::vector<int64_t>> JitTrace::kept_shapes(const JitOutput& output) {
  std::vector<std::vector<int64_t>> kept;
  const auto is_known = [&](const engine::TensorState& state) {
    if (std::ranges::find(output.tensors, &state, &engine::StatePtr::get) != output.tensors.end())
      return true;
    bool is_gradient = false;
    session_.state().each_state(
        [&](const engine::TensorState& other) { is_gradient |= other.grad.get() == &state; });
    return is_gradient || session_.constant_value(state.node).has_value();
  };
  session_.state().each_state([&](const engine::TensorState& state) {
    if (state.call != call_ || is_known(state)) return;
    const auto shape = session_.shape(state.node);
    kept.emplace_back(shape.begin(), shape.end());
  });
  return kept;
}

// Rejects tensors of the call that live on elsewhere: a replay could not renew them. Dead calls of
// user functions may hold some until they are collected.
void JitTrace::require_nothing_kept(const JitOutput& output) {
  auto kept = kept_shapes(output);
  if (!kept.empty()) {
    session_.forget_unreached();
    kept = kept_shapes(output);
  }
  require(kept.empty(),
          "[jit] the function keeps tensors that it made (of shapes {}) somewhere outside of it, "
          "where a replay cannot renew them; return them, or assign() them to tensors that are "
          "there before the call",
          listed(kept));
}

// Replaces counts made for the recording by the original ones, as a replay does.
void JitTrace::give_back_counts(engine::TensorState& state) {
  if (!session_.is_counted(state.node)) return;
  const std::vector<Extent> extents = session_.extents_of(state.node);
  for (uint32_t axis = 0; axis < extents.size(); ++axis)
    for (const Count& c : counts_)
      if (extents[axis].count == c.during->node)
        session_.denote(state,
                        session_.bound(state.node, axis, c.before->node, extents[axis].least));
}

std::vector<AssignedView> JitTrace::assigned_views() {
  const engine::Session::Lock lock(session_);
  std::vector<AssignedView> assigned;
  for (const Seen& seen : seen_) {
    const engine::StatePtr state = seen.state.lock();
    if (state && state->links.stands_alone && state->node != seen.during->node)
      assigned.push_back({state, handle(state->node, state->device)});
  }
  return assigned;
}

JitRecording JitTrace::finish(const JitOutput& output, bool keeps) {
  require(is_whole_,
          "[jit] the function went on after an error while it was recorded, in which a tensor that "
          "it uses was lost; let the error out of the function, and call it again");
  session_.realize_with_pending(left_behind(output));
  const engine::Session::Lock lock(session_);
  note_updates();
  note_results(output);
  if (keeps) require_nothing_kept(output);
  recording_.structure = output.structure;
  recording_.random_words = session_.random().counter - random_.counter;
  for (uint32_t tensor = 0; tensor < recording_.tensors.size(); ++tensor)
    if (const engine::StatePtr state = seen_[seen_of_[tensor]].state.lock())
      if (state->requires_grad && !recording_.tensors[tensor].requires_grad)
        recording_.marked.push_back(tensor);
  for (JitValue& value : recording_.values)
    if (value.kind != JitValue::Kind::Fixed) value.value.reset();
  for (const engine::StatePtr& state : output.tensors)
    if (state && !is_before(*state)) give_back_counts(*state);
  for (const Seen& seen : seen_) {
    const engine::StatePtr state = seen.state.lock();
    if (!state) continue;
    if (state->node != seen.during->node) give_back_counts(*state);
    if (state->grad && !is_before(*state->grad)) give_back_counts(*state->grad);
  }
  return std::move(recording_);
}

}  // namespace plugrad::jit_detail
