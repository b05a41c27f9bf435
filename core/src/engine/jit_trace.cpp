#include "engine/jit_trace.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "engine/parts.h"

namespace plugrad::engine {
namespace {

thread_local JitTrace* active_trace = nullptr;

constexpr uint64_t kNoCall = UINT64_MAX;  // of handles that only a trace or a recording holds

uint64_t next_call() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// What is computed within belongs to no call.
class Suspended {
 public:
  Suspended() : trace_(std::exchange(active_trace, nullptr)) {}
  ~Suspended() { active_trace = trace_; }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 private:
  JitTrace* trace_;
};

bool shows_the_same_elements(Op op) {
  return op == Op::Reshape || op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

std::string listed(std::span<const std::vector<int64_t>> shapes) {
  std::string text;
  for (const auto& shape : shapes)
    text += fmt::format("{}({})", text.empty() ? "" : ", ", fmt::join(shape, ", "));
  return text;
}

}  // namespace

JitTrace* JitTrace::active() {
  return active_trace;
}

JitTrace::JitTrace(Session& session, std::span<const StatePtr> arguments)
    : session_(session), outer_(active_trace), call_(next_call()), random_(session.random()) {
  const Session::Lock lock(session_);
  for (uint32_t i = 0; i < arguments.size(); ++i)
    if (arguments[i] && !tensor_of_.contains(arguments[i].get())) add_tensor(*arguments[i], i);
  active_trace = this;
}

// Tensors that were not assigned denote again what they did, with its past.
JitTrace::~JitTrace() {
  active_trace = outer_;
  const Session::Lock lock(session_);
  for (const Seen& seen : seen_) {
    const StatePtr state = seen.state.lock();
    if (!state || state->node != seen.during->node) continue;
    session_.denote(*state, seen.before->node);
    if (state->requires_grad) session_.parts_->tape.mark_leaf(state->node);
  }
}

StatePtr JitTrace::handle(Id node, uint32_t device) {
  StatePtr made = session_.make(node, device);
  made->call = kNoCall;
  return made;
}

void JitTrace::use(TensorState& state) {
  if (!is_before(state) || state.call == kNoCall || tensor_of_.contains(&state) ||
      gradient_of_.contains(&state))
    return;
  add_tensor(state, JitTensor::kCaptured);
}

void JitTrace::use_gradient(TensorState& leaf) {
  use(leaf);
  if (!leaf.grad || !is_before(*leaf.grad) || tensor_of_.contains(leaf.grad.get())) return;
  const uint32_t tensor = tensor_of_.at(&leaf);
  if (!gradient_of_.emplace(leaf.grad.get(), tensor).second) return;
  cut_off(*leaf.grad, {.kind = JitValue::Kind::Gradient, .tensor = tensor});
}

// A number has no device to be stored on. So has what is computed of numbers alone, but a program
// that uses one device stores it there: it may be a state that is about to be assigned.
bool JitTrace::is_number(const TensorState& state) {
  const Id node = state.node;
  const DType dtype = session_.graph()[node].dtype;
  if (dtype == DType::Index || dtype == DType::WeakFloat) return true;
  return session_.devices()[node] == 0 && state.device == 0 &&
         session_.parts_->devices.opened().size() > 1;
}

void JitTrace::add_tensor(TensorState& state, uint32_t argument) {
  const auto number = static_cast<uint32_t>(recording_.tensors.size());
  tensor_of_.emplace(&state, number);
  JitTensor tensor{.argument = argument, .state = state.weak_from_this()};
  const auto shape = session_.shape(state.node);
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.dtype = session_.graph()[state.node].dtype;
  tensor.requires_grad = state.requires_grad;
  tensor.is_number = is_number(state);
  if (!tensor.is_number) {
    recording_.tensors.push_back(tensor);
    return cut_off(state, {.kind = JitValue::Kind::Tensor, .tensor = number});
  }
  tensor.number = handle(state.node, state.device);
  recording_.tensors.push_back(tensor);
  seen_.push_back({state.weak_from_this(), tensor.number, tensor.number, state.grad});
  seen_of_.push_back(seen_.size() - 1);
}

// The elements of the state under a Value of its own, which no other state shares.
ValuePtr JitTrace::own_value(TensorState& state) {
  const Suspended suspended;
  auto own = std::make_shared<Value>();
  if (session_.constant_value(state.node)) {
    auto bytes = std::make_shared<std::vector<std::byte>>(*session_.peek(state));
    own->dtype = strong(session_.graph()[state.node].dtype);
    own->device = state.device == 0 ? session_.default_device() : state.device;
    own->size_bytes = bytes->size();
    own->host = *bytes;
    own->host_owner = bytes;
    if (is_integer(own->dtype)) host_[own.get()] = *bytes;
    buffer_of(*own, session_.parts_->devices);
    return own;
  }
  const ValuePtr value = session_.readable_value(state);
  if (!value->buffer && is_integer(value->dtype))
    host_[own.get()] = {value->host.begin(), value->host.end()};
  buffer_of(*value, session_.parts_->devices);
  *own = *value;
  return own;
}

const JitTrace::Count* JitTrace::known_count(Id node) const {
  const auto at = std::ranges::find(counts_, node, [](const Count& c) { return c.before->node; });
  return at != counts_.end() ? &*at : nullptr;
}

// Tensors that have a count in common have one in common in the recording.
const JitTrace::Count& JitTrace::cut_count(Id count, uint32_t tensor, uint32_t axis) {
  if (const Count* known = known_count(count)) return *known;
  const StatePtr reading = handle(count, 0);
  Count made{handle(count, 0), nullptr, 0};
  const ValuePtr value = own_value(*reading);
  const Id node = session_.add_buffer(session_.graph(), {}, value->dtype, value->device);
  session_.parts_->values.set(node, value);
  made.during = handle(node, value->device);
  made.value = add_value(value, {.kind = JitValue::Kind::Count, .tensor = tensor, .axis = axis});
  return counts_.emplace_back(std::move(made));
}

// `node`, of the elements of `state`, with its counted axes.
Id JitTrace::with_counts(Id node, const TensorState& state, uint32_t tensor, bool is_gradient) {
  if (!session_.is_counted(state.node)) return node;
  require(!is_gradient,
          "[jit] a gradient of shape ({}) has an axis of a variable size and is there before the "
          "call; clear it with zero_grad, or compute it inside of the function",
          fmt::join(session_.shape(state.node), ", "));
  const std::vector<Extent> extents = session_.extents_of(state.node);
  for (uint32_t axis = 0; axis < extents.size(); ++axis) {
    if (!extents[axis].is_counted()) continue;
    const Count& count = cut_count(extents[axis].count, tensor, axis);
    recording_.tensors[tensor].counts.push_back({axis, count.value, extents[axis].least});
    node = session_.bound(node, axis, count.during->node, extents[axis].least);
  }
  return node;
}

void JitTrace::cut_off(TensorState& state, JitValue origin) {
  Session::Parts& parts = *session_.parts_;
  if (parts.tape.is_tracked(session_.graph(), state.node) && !state.requires_grad) {
    const auto shape = session_.shape(state.node);
    cut_.emplace_back(shape.begin(), shape.end());
  }
  const ValuePtr value = own_value(state);
  const auto shape = session_.shape(state.node);
  Seen seen{state.weak_from_this(), handle(state.node, state.device), nullptr, state.grad};
  const Count* known = known_count(state.node);
  Id node = known ? known->during->node
                  : session_.add_buffer(session_.graph(),
                                        std::vector<int64_t>(shape.begin(), shape.end()),
                                        value->dtype, value->device);
  if (!known) parts.values.set(node, value);
  const bool is_tensor = origin.kind == JitValue::Kind::Tensor;
  node = with_counts(node, state, origin.tensor, !is_tensor);
  const Id before = state.node;
  session_.denote(state, node);
  if (state.requires_grad) parts.tape.mark_leaf(node);
  seen.during = handle(node, value->device);
  if (origin.kind == JitValue::Kind::Tensor) {
    recording_.tensors.back().dtype = value->dtype;
    recording_.tensors.back().device = value->device;
    seen_of_.push_back(seen_.size());
  }
  seen_.push_back(std::move(seen));
  const uint32_t tensor = origin.tensor;
  const uint32_t number = known ? known->value : add_value(value, std::move(origin));
  if (!is_tensor || value->dtype != DType::I32 || !session_.shape(before).empty()) return;
  recording_.tensors[tensor].counts.push_back({JitCount::kItself, number});
  if (!known) counts_.push_back({handle(before, 0), handle(node, value->device), number});
}

uint32_t JitTrace::add_value(const ValuePtr& value, JitValue made) {
  const auto number = static_cast<uint32_t>(recording_.values.size());
  made.value = value;
  recording_.values.push_back(std::move(made));
  value_of_.emplace(value.get(), number);
  return number;
}

void JitTrace::take_gradients(std::string_view function) {
  recording_.takes_gradients = true;
  require(cut_.empty(),
          "[{}] in a jitted function: its arguments or captured tensors of shapes {} were computed "
          "of tensors that are marked with requires_grad_(), and gradients do not flow out of a "
          "jitted call; detach() them, or compute them inside of it",
          function, listed(cut_));
}

bool JitTrace::is_of_constants(const Value& value) {
  for (Id id = 0; id < session_.graph().size(); ++id)
    if (session_.parts_->values.find(id) == &value && session_.devices()[id] == 0) return true;
  return false;
}

uint32_t JitTrace::number_of(const ValuePtr& value) {
  if (const auto known = value_of_.find(value.get()); known != value_of_.end())
    return known->second;
  if (!is_of_constants(*value)) recording_.has_strangers = true;
  return add_value(value, {.kind = JitValue::Kind::Fixed});
}

void JitTrace::ran(const std::shared_ptr<ReadyPlan>& ready, std::span<const ValuePtr> inputs,
                   std::span<const ValuePtr> roots) {
  JitRun run{ready, {}, {}};
  for (const ValuePtr& input : inputs) run.inputs.push_back(number_of(input));
  for (const ValuePtr& root : roots) {
    const auto known = value_of_.find(root.get());
    run.roots.push_back(known != value_of_.end() ? known->second
                                                 : add_value(root, {.kind = JitValue::Kind::Made}));
  }
  recording_.runs.push_back(std::move(run));
}

void JitTrace::brought_from_host(const ValuePtr& value) {
  add_value(value,
            {.kind = JitValue::Kind::Fixed, .host = value->host, .host_owner = value->host_owner});
}

void JitTrace::drew_random(Id key_node, const RandomState& at, RandomKey key) {
  const auto known = value_of_.find(session_.parts_->values.find(key_node));
  ensure(known != value_of_.end(), "a random key is no value of the call");
  JitValue& value = recording_.values[known->second];
  value.kind = JitValue::Kind::Random;
  value.counter = at.counter - random_.counter;
  value.key = key;
  value.device = value.value->device;
  value.host = {};
  value.host_owner.reset();
}

// What the step made of them is stored; a replay does not compute them apart.
void JitTrace::step_done() {
  for (const auto& [state, tensor] : tensor_of_) {
    const Seen& seen = seen_[seen_of_[tensor]];
    const StatePtr leaf = seen.state.lock();
    if (leaf && leaf->grad && !is_before(*leaf->grad) && leaf->node != seen.during->node)
      used_up_.push_back(leaf->grad.get());
  }
}

void JitTrace::check(const TensorState& indices, const IndexRange& range) {
  const Graph& graph = session_.graph();
  Id base = indices.node;
  while (!session_.parts_->values.find(base) && shows_the_same_elements(graph[base].op))
    base = graph.sources(base)[0];
  const Value* value = session_.parts_->values.find(base);
  const auto number = value_of_.find(value);
  if (number == value_of_.end() || value->dtype != range.dtype) return;
  const JitValue::Kind kind = recording_.values[number->second].kind;
  if (kind != JitValue::Kind::Tensor) return;
  if (const auto known = host_.find(value); known != host_.end()) range.require_of(known->second);
  recording_.indices.push_back({number->second, range});
}

void JitTrace::refuse_read(std::string_view function) {
  fail(ErrorKind::User,
       "[{}] a value is read inside a jitted function: what the host does with it would not be "
       "done again by a replay; return the tensor and read it outside, or compute with it as a "
       "tensor (where() instead of if)",
       function);
}

bool JitTrace::is_kept_gradient(const TensorState& leaf) const {
  if (!leaf.grad || is_before(*leaf.grad)) return false;
  if (std::ranges::find(used_up_, leaf.grad.get()) == used_up_.end()) return true;
  const uint32_t tensor = tensor_of_.at(&leaf);  // it is summed over calls
  return std::ranges::any_of(gradient_of_, [&](const auto& g) { return g.second == tensor; });
}

// The order is part of the plan's key: that of the results and of first use. Ids would not do, as
// what is made of constants alone may still be there from an earlier call.
std::vector<TensorState*> JitTrace::left_behind(const JitOutput& output) {
  std::vector<TensorState*> left;
  for (const StatePtr& state : output.tensors)
    if (state) left.push_back(state.get());
  for (const JitTensor& tensor : recording_.tensors)
    if (const StatePtr leaf = tensor.state.lock(); leaf && is_kept_gradient(*leaf))
      left.push_back(leaf->grad.get());
  return left;
}

std::vector<JitCount> JitTrace::counts_of(Id node) {
  std::vector<JitCount> counts;
  if (!session_.is_counted(node)) return counts;
  const std::vector<Extent> extents = session_.extents_of(node);
  std::vector<StatePtr> handles;
  for (const Extent& e : extents) handles.push_back(e.is_counted() ? handle(e.count, 0) : nullptr);
  for (uint32_t axis = 0; axis < extents.size(); ++axis)
    if (handles[axis])
      counts.push_back(
          {axis, number_of(session_.readable_value(*handles[axis])), extents[axis].least});
  return counts;
}

// Of a state that has a value. A view of something else is copied: a replay makes whole values.
JitResult JitTrace::result_of(TensorState& state) {
  using Kind = JitResult::Kind;
  if (session_.constant_value(state.node) && !session_.is_counted(state.node))
    return {.kind = Kind::Constant, .constant = handle(state.node, state.device)};
  const auto base_of = [&] {
    Id base = state.node;
    while (!session_.parts_->values.find(base) &&
           shows_the_same_elements(session_.graph()[base].op))
      base = session_.graph().sources(base)[0];
    return base;
  };
  if (!session_.parts_->values.find(base_of())) {
    const Id node = state.node;
    session_.denote(state,
                    session_.graph().add(Op::Contiguous, session_.graph()[node].dtype, {node}));
    if (state.requires_grad) session_.parts_->tape.mark_leaf(state.node);
    session_.realize(state);
  }
  const auto shape = session_.shape(state.node);
  return {.kind = Kind::Value,
          .number = number_of(session_.parts_->values.share(base_of())),
          .shape = {shape.begin(), shape.end()},
          .counts = counts_of(state.node)};
}

JitResult JitTrace::tensor_itself(TensorState& state) {
  use(state);
  if (gradient_of_.contains(&state)) return result_of(state);
  return {.kind = JitResult::Kind::Tensor, .number = tensor_of_.at(&state)};
}

void JitTrace::note_gradients(uint32_t tensor, TensorState& leaf) {
  const Seen& seen = seen_[seen_of_[tensor]];
  if (is_same_owner(seen.gradient, std::weak_ptr<TensorState>(leaf.grad))) return;
  JitUpdate update{.tensor = tensor, .is_gradient = true};
  if (leaf.grad && is_before(*leaf.grad))
    update.to = tensor_itself(*leaf.grad);
  else if (is_kept_gradient(leaf))
    update.to = result_of(*leaf.grad);
  recording_.updates.push_back(std::move(update));
}

void JitTrace::note_updates() {
  for (uint32_t tensor = 0; tensor < recording_.tensors.size(); ++tensor) {
    const Seen& seen = seen_[seen_of_[tensor]];
    const StatePtr state = seen.state.lock();
    if (!state) continue;
    if (state->node != seen.during->node)
      recording_.updates.push_back({.tensor = tensor, .to = result_of(*state)});
    note_gradients(tensor, *state);
  }
}

void JitTrace::note_results(const JitOutput& output) {
  for (size_t i = 0; i < output.tensors.size(); ++i) {
    const StatePtr& state = output.tensors[i];
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
      if (!state->requires_grad) session_.release_tape(*state);
    }
    recording_.results.push_back(std::move(result));
  }
}

std::vector<std::vector<int64_t>> JitTrace::kept_shapes(const JitOutput& output) {
  std::vector<std::vector<int64_t>> kept;
  const auto is_known = [&](const TensorState& state) {
    if (std::ranges::find(output.tensors, &state, &StatePtr::get) != output.tensors.end())
      return true;
    bool is_gradient = false;
    session_.parts_->each_state(
        [&](const TensorState& other) { is_gradient |= other.grad.get() == &state; });
    return is_gradient || session_.constant_value(state.node).has_value();
  };
  session_.parts_->each_state([&](const TensorState& state) {
    if (state.call != call_ || is_known(state)) return;
    const auto shape = session_.shape(state.node);
    kept.emplace_back(shape.begin(), shape.end());
  });
  return kept;
}

// A tensor of the call that lives on elsewhere would go stale. Calls of a user's function that are
// dead may hold some until they are swept.
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

// What is left shares the counts of the tensors of before, as the results of a replay do.
void JitTrace::give_back_counts(TensorState& state) {
  if (!session_.is_counted(state.node)) return;
  const std::vector<Extent> extents = session_.extents_of(state.node);
  for (uint32_t axis = 0; axis < extents.size(); ++axis)
    for (const Count& c : counts_)
      if (extents[axis].count == c.during->node)
        session_.denote(state,
                        session_.bound(state.node, axis, c.before->node, extents[axis].least));
  if (state.requires_grad) session_.parts_->tape.mark_leaf(state.node);
}

JitRecording JitTrace::finish(const JitOutput& output, bool keeps) {
  session_.realize_with_pending(left_behind(output));
  const Session::Lock lock(session_);
  note_updates();
  note_results(output);
  if (keeps) require_nothing_kept(output);
  recording_.structure = output.structure;
  recording_.random_words = session_.random().counter - random_.counter;
  for (uint32_t tensor = 0; tensor < recording_.tensors.size(); ++tensor)
    if (const StatePtr state = seen_[seen_of_[tensor]].state.lock())
      if (state->requires_grad && !recording_.tensors[tensor].requires_grad)
        recording_.marked.push_back(tensor);
  for (JitValue& value : recording_.values)
    if (value.kind != JitValue::Kind::Fixed) value.value.reset();
  for (const StatePtr& state : output.tensors)
    if (state && !is_before(*state)) give_back_counts(*state);
  for (const Seen& seen : seen_) {
    const StatePtr state = seen.state.lock();
    if (!state) continue;
    if (state->node != seen.during->node) give_back_counts(*state);
    if (state->grad && !is_before(*state->grad)) give_back_counts(*state->grad);
  }
  return std::move(recording_);
}

}  // namespace plugrad::engine
