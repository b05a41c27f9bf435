#include "jit/trace.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/check.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "jit/facts.h"

namespace plugrad::jit_detail {
namespace {

constexpr uint64_t kNoCall = UINT64_MAX;  // of handles that only a trace or recording holds

uint64_t next_call() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

// Suspends the observer: computations meanwhile belong to no call.
class Suspended {
 public:
  Suspended() : observer_(engine::CallObserver::set_active(nullptr)) {}
  ~Suspended() { engine::CallObserver::set_active(observer_); }
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;

 private:
  engine::CallObserver* observer_;
};

}  // namespace

JitTrace* JitTrace::active() {
  return static_cast<JitTrace*>(engine::CallObserver::active());  // the only subclass
}

JitTrace::JitTrace(engine::Session& session, std::span<const engine::StatePtr> arguments)
    : session_(session),
      outer_(engine::CallObserver::active()),
      call_(next_call()),
      random_(session.random()) {
  const engine::Session::Lock lock(session_);
  try {
    hide_constants();
    for (uint32_t i = 0; i < arguments.size(); ++i)
      if (arguments[i] && !tensor_of_.contains(arguments[i].get())) add_tensor(*arguments[i], i);
  } catch (...) {
    restore();
    throw;
  }
  engine::CallObserver::set_active(this);
}

JitTrace::~JitTrace() {
  engine::CallObserver::set_active(outer_);
  restore();
}

// Restores the nodes and autograd histories of tensors that are not assigned, and of views: their
// values in the call did not reach their bases. Takes no Session::Lock, whose safe
// point may need memory.
void JitTrace::restore() noexcept {
  const std::lock_guard guard(session_.mutex());
  for (const Seen& seen : seen_) {
    const engine::StatePtr state = seen.state.lock();
    if (!state) continue;
    const bool is_assigned = state->node != seen.during->node, is_view = state->links.stands_alone;
    state->links.stands_alone = false;
    if (is_assigned && !is_view) continue;
    if (is_assigned) session_.state().forget_assignments(state.get());
    state->links.is_behind |= is_assigned;
    session_.denote(*state, seen.before->node);
  }
  for (const Seen& seen : seen_) try {
      if (const engine::StatePtr state = seen.state.lock()) session_.catch_up(*state);
    } catch (...) {  // without memory its views are behind until its base is assigned
    }
  try {
    for (const auto& [hidden, value] : hidden_)
      if (!session_.state().values.find(hidden->node))
        session_.state().values.set(hidden->node, value);
  } catch (...) {  // without memory they are computed again
  }
}

// Hides existing values of constants alone: whether they exist depends on what the caller kept of
// an earlier call. The call computes its own, so that all calls are recorded alike.
void JitTrace::hide_constants() {
  engine::ValueTable& values = session_.state().values;
  for (Id id = 0; id < session_.graph().size(); ++id) {
    if (!values.find(id) || session_.devices()[id] != 0) continue;
    const engine::ValuePtr value = values.share(id);
    hidden_.emplace_back(handle(id, value->device), value);
    values.set(id, nullptr);
  }
}

engine::StatePtr JitTrace::handle(Id node, uint32_t device) {
  engine::StatePtr made = session_.make(node, device);
  made->call = kNoCall;
  return made;
}

void JitTrace::use(engine::TensorState& state) {
  if (!is_before(state) || state.call == kNoCall || tensor_of_.contains(&state) ||
      gradient_of_.contains(&state))
    return;
  is_whole_ = false;
  add_tensor(state, JitTensor::kCaptured);
  is_whole_ = true;
}

void JitTrace::use_gradient(engine::TensorState& leaf) {
  use(leaf);
  const auto known = tensor_of_.find(&leaf);
  if (known == tensor_of_.end()) return;
  const uint32_t tensor = known->second;
  if (!leaf.grad) recording_.tensors[tensor].has_no_gradient |= !replaced_.contains(&leaf);
  if (!leaf.grad || !is_before(*leaf.grad) || tensor_of_.contains(leaf.grad.get())) return;
  if (!gradient_of_.emplace(leaf.grad.get(), tensor).second) return;
  is_whole_ = false;
  add_facts(recording_.tensors[tensor].gradient_facts, session_, *leaf.grad);
  cut_off(*leaf.grad, {.kind = JitValue::Kind::Gradient, .tensor = tensor});
  is_whole_ = true;
}

void JitTrace::add_tensor(engine::TensorState& state, uint32_t argument) {
  const auto number = static_cast<uint32_t>(recording_.tensors.size());
  tensor_of_.emplace(&state, number);
  JitTensor tensor{.argument = argument, .state = state.weak_from_this()};
  const auto shape = session_.shape(state.node);
  tensor.shape.assign(shape.begin(), shape.end());
  tensor.dtype = session_.graph()[state.node].dtype;
  add_facts(tensor.facts, session_, state);
  tensor.requires_grad = state.requires_grad;
  tensor.is_number = is_number(session_, state);
  if (!tensor.is_number) {
    recording_.tensors.push_back(tensor);
    return cut_off(state, {.kind = JitValue::Kind::Tensor, .tensor = number});
  }
  tensor.number = handle(state.node, state.device);
  recording_.tensors.push_back(tensor);
  seen_of_.push_back(seen_.size());
  seen_.push_back({state.weak_from_this(), tensor.number, tensor.number, state.grad});
  state.links.stands_alone = state.links.base != nullptr;  // until it is restored
}

// The state's elements as a Value that no other state shares.
engine::ValuePtr JitTrace::own_value(engine::TensorState& state) {
  const Suspended suspended;
  if (engine::ValuePtr constant = value_of_constant(session_, state)) {
    if (is_integer(constant->dtype))
      host_[constant.get()] = {constant->host.begin(), constant->host.end()};
    engine::buffer_of(*constant, session_.state().devices);
    return constant;
  }
  const engine::ValuePtr value = session_.readable_value(state);
  auto own = std::make_shared<engine::Value>();
  if (value->sharded) return own_parts(*value);
  if (!value->buffer && is_integer(value->dtype))
    host_[own.get()] = {value->host.begin(), value->host.end()};
  engine::buffer_of(*value, session_.state().devices);
  *own = *value;
  return own;
}

engine::ValuePtr JitTrace::own_parts(const engine::Value& whole) {
  auto own = std::make_shared<engine::Value>(whole);
  engine::ShardedParts parts{whole.sharded->spec, {}};
  std::unordered_map<const engine::Value*, engine::ValuePtr> copies;  // positions may share a part
  for (const engine::ValuePtr& part : whole.sharded->parts) {
    engine::ValuePtr& copy = copies[part.get()];
    if (part && !copy) {
      engine::buffer_of(*part, session_.state().devices);
      copy = std::make_shared<engine::Value>(*part);
    }
    parts.parts.push_back(copy);
  }
  own->sharded = std::make_shared<const engine::ShardedParts>(std::move(parts));
  return own;
}

const JitTrace::Count* JitTrace::known_count(Id node) const {
  const auto at = std::ranges::find(counts_, node, [](const Count& c) { return c.before->node; });
  return at != counts_.end() ? &*at : nullptr;
}

// Tensors that share a count share it in the recording too.
const JitTrace::Count& JitTrace::cut_count(Id count, uint32_t tensor, uint32_t axis) {
  if (const Count* known = known_count(count)) return *known;
  const engine::StatePtr reading = handle(count, 0);
  Count made{handle(count, 0), nullptr, 0};
  const engine::ValuePtr value = own_value(*reading);
  const Id node = session_.add_buffer(session_.graph(), {}, value->dtype, value->device);
  session_.state().values.set(node, value);
  made.during = handle(node, value->device);
  made.value = add_value(value, {.kind = JitValue::Kind::Count, .tensor = tensor, .axis = axis});
  return counts_.emplace_back(std::move(made));
}

// Adds the counted axes of `state` to `node`, which has its elements.
Id JitTrace::with_counts(Id node, const engine::TensorState& state, uint32_t tensor,
                         bool is_gradient) {
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

void JitTrace::cut_off(engine::TensorState& state, JitValue origin) {
  engine::SessionState& parts = session_.state();
  if (parts.tape.is_tracked(session_.graph(), state.node) && !state.requires_grad) {
    const auto shape = session_.shape(state.node);
    cut_.emplace_back(shape.begin(), shape.end());
  }
  const engine::ValuePtr value = own_value(state);
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
  seen.during = handle(node, value->device);
  if (origin.kind == JitValue::Kind::Tensor) {
    recording_.tensors.back().dtype = value->dtype;
    recording_.tensors.back().device = value->device;
    seen_of_.push_back(seen_.size());
  }
  session_.prepare_to_denote(state, state.requires_grad);
  seen_.push_back(std::move(seen));  // from here on it is restored
  if (is_tensor) state.links.stands_alone = state.links.base != nullptr;
  session_.denote(state, node);
  const uint32_t tensor = origin.tensor;
  const uint32_t number = known ? known->value : add_value(value, std::move(origin));
  if (value->sharded) split(value);
  if (!is_tensor || value->dtype != DType::I32 || !session_.shape(before).empty()) return;
  recording_.tensors[tensor].counts.push_back({JitCount::kItself, number});
  if (!known) counts_.push_back({handle(before, 0), handle(node, value->device), number});
}

uint32_t JitTrace::add_value(const engine::ValuePtr& value, JitValue made) {
  const auto number = static_cast<uint32_t>(recording_.values.size());
  made.value = value;
  recording_.values.push_back(std::move(made));
  value_of_.emplace(value.get(), number);
  return number;
}

bool JitTrace::is_of_constants(const engine::Value& value) {
  for (Id id = 0; id < session_.graph().size(); ++id)
    if (session_.state().values.find(id) == &value && session_.devices()[id] == 0) return true;
  return false;
}

uint32_t JitTrace::number_of(const engine::ValuePtr& value) {
  if (const auto known = value_of_.find(value.get()); known != value_of_.end())
    return known->second;
  if (!is_of_constants(*value)) recording_.has_strangers = true;
  return add_value(value, {.kind = JitValue::Kind::Fixed});
}

void JitTrace::ran(const std::shared_ptr<engine::ReadyPlan>& ready,
                   std::span<const engine::ValuePtr> inputs,
                   std::span<const engine::ValuePtr> roots) {
  JitRun run{ready, {}, {}};
  for (const engine::ValuePtr& input : inputs) run.inputs.push_back(number_of(input));
  for (const engine::ValuePtr& root : roots) {
    const auto known = value_of_.find(root.get());
    run.roots.push_back(known != value_of_.end() ? known->second
                                                 : add_value(root, {.kind = JitValue::Kind::Made}));
  }
  recording_.runs.push_back(std::move(run));
}

/// The numbers of the parts in this process; new ones are values that a run makes.
std::vector<uint32_t> JitTrace::parts_of(const engine::Value& whole) {
  std::vector<uint32_t> numbers;
  for (const engine::ValuePtr& part : whole.sharded->parts) {
    if (!part) continue;
    const auto known = value_of_.find(part.get());
    numbers.push_back(known != value_of_.end() ? known->second
                                               : add_value(part, {.kind = JitValue::Kind::Made}));
  }
  return numbers;
}

void JitTrace::split(const engine::ValuePtr& whole) {
  recording_.runs.push_back({nullptr, {number_of(whole)}, parts_of(*whole), nullptr});
}

void JitTrace::joined(const engine::ValuePtr& whole) {
  auto form = std::make_shared<engine::Value>(*whole);
  form->sharded =
      std::make_shared<const engine::ShardedParts>(engine::ShardedParts{whole->sharded->spec, {}});
  JitRun run{nullptr, parts_of(*whole), {}, std::move(form)};
  for (const engine::ValuePtr& part : whole->sharded->parts) run.is_here.push_back(part != nullptr);
  run.roots = {add_value(whole, {.kind = JitValue::Kind::Made})};
  recording_.runs.push_back(std::move(run));
}

void JitTrace::brought_from_host(const engine::ValuePtr& value) {
  add_value(value,
            {.kind = JitValue::Kind::Fixed, .host = value->host, .host_owner = value->host_owner});
}

std::vector<uint32_t> JitTrace::constant_inputs(std::span<const engine::ValuePtr> inputs) const {
  const auto is_constant = [&](const engine::ValuePtr& input) {
    const auto known = value_of_.find(input.get());
    if (known == value_of_.end()) return false;
    const JitValue& value = recording_.values[known->second];
    if (value.kind != JitValue::Kind::Tensor ||
        recording_.tensors[value.tensor].argument != JitTensor::kCaptured)
      return false;
    const Seen& seen = seen_[seen_of_[value.tensor]];
    const engine::StatePtr state = seen.state.lock();
    return state && state->node == seen.during->node;
  };
  std::vector<uint32_t> numbers;
  for (uint32_t i = 0; i < inputs.size(); ++i)
    if (is_constant(inputs[i])) numbers.push_back(i);
  return numbers;
}

void JitTrace::drew_random(Id key_node, const engine::RandomState& at, RandomKey key) {
  const auto known = value_of_.find(session_.state().values.find(key_node));
  ensure(known != value_of_.end(), "a random key is no value of the call");
  JitValue& value = recording_.values[known->second];
  value.kind = JitValue::Kind::Random;
  value.counter = at.counter - random_.counter;
  value.key = key;
  value.device = value.value->device;
  value.host = {};
  value.host_owner.reset();
}

// Gradients that the step consumed are stored with it; a replay does not compute them separately.
void JitTrace::step_done() {
  for (const auto& [state, tensor] : tensor_of_) {
    const Seen& seen = seen_[seen_of_[tensor]];
    const engine::StatePtr leaf = seen.state.lock();
    if (leaf && leaf->grad && !is_before(*leaf->grad) && leaf->node != seen.during->node)
      used_up_.push_back(leaf->grad.get());
  }
}

void JitTrace::check(const engine::TensorState& indices, const engine::IndexRange& range) {
  const Graph& graph = session_.graph();
  Id base = indices.node;
  DType dtype = range.dtype;
  while (!session_.state().values.find(base) &&
         (engine::shows_the_same_elements(graph[base].op) || engine::is_widening(graph, base))) {
    base = graph.sources(base)[0];
    dtype = strong(graph[base].dtype);
  }
  const engine::Value* value = session_.state().values.find(base);
  const auto number = value_of_.find(value);
  if (number == value_of_.end() || value->dtype != dtype) return;
  const JitValue::Kind kind = recording_.values[number->second].kind;
  if (kind != JitValue::Kind::Tensor) return;
  engine::IndexRange own = range;
  own.dtype = dtype;
  if (const auto known = host_.find(value); known != host_.end()) own.require_of(known->second);
  recording_.indices.push_back({number->second, own});
}

}  // namespace plugrad::jit_detail
