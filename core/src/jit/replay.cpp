#include <algorithm>
#include <ranges>

#include "base/check.h"
#include "base/trace/trace.h"
#include "engine/recording/recorded_functions.h"
#include "engine/refine/refinement.h"
#include "engine/session_state.h"
#include "engine/views/linked_views.h"
#include "jit/calls.h"
#include "jit/constants.h"
#include "jit/facts.h"
#include "jit/signature.h"

namespace plugrad::jit_detail {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;

}  // namespace

JitReplay::JitReplay(engine::Session& session, JitRecording& recording,
                     std::span<const engine::StatePtr> arguments)
    : session_(session), recording_(recording) {
  states_.reserve(recording.tensors.size());
  for (const JitTensor& tensor : recording.tensors)
    states_.push_back(tensor.argument == JitTensor::kCaptured ? tensor.state.lock()
                                                              : arguments[tensor.argument]);
}

// Call has_the_gradients() first.
std::optional<engine::Difference> JitReplay::invalid_because() {
  using engine::Cause, engine::Difference;
  const Guard guard(session_.mutex());
  std::vector<uint64_t> now;
  const auto has_facts = [&](const engine::TensorState& state, const std::vector<uint64_t>& facts) {
    now.clear();
    add_facts(now, session_, state);
    return now == facts;
  };
  const auto name_of_tensor = [](const JitTensor& tensor) {
    const bool is_captured = tensor.argument == JitTensor::kCaptured;
    return fmt::format("a{} of shape ({})", is_captured ? " captured tensor" : "n argument",
                       fmt::join(tensor.shape, ", "));
  };
  // `now` has the facts of the tensor, or of its gradient.
  const auto difference = [&](std::string name, const std::vector<uint64_t>& facts) {
    std::vector<engine::Fact> was, is;
    add_named_facts(was, session_, name, facts);
    add_named_facts(is, session_, name, now);
    return engine::differences(was, is)[0];
  };
  for (size_t i = 0; i < states_.size(); ++i) {
    const JitTensor& tensor = recording_.tensors[i];
    if (!states_[i])
      return Difference{Cause::Captured, name_of_tensor(tensor) + " is gone", "", ""};
    if (states_[i]->requires_grad != tensor.requires_grad)
      return Difference{Cause::Captured, name_of_tensor(tensor) + " has another requires_grad", "",
                        ""};
    if (!has_facts(*states_[i], tensor.facts))
      return difference(name_of_tensor(tensor), tensor.facts);
    if (!tensor.gradient_facts.empty() && !has_facts(*states_[i]->grad, tensor.gradient_facts))
      return difference("the gradient of " + name_of_tensor(tensor), tensor.gradient_facts);
    if (tensor.is_number && states_[i]->node != tensor.number->node)
      return Difference{Cause::Number, name_of_tensor(tensor) + " is another number", "", ""};
  }
  if (!has_the_counts()) return Difference{Cause::Shape, "other axes have variable sizes", "", ""};
  if (may_refuse_writes())
    return Difference{Cause::Structure, "assigned tensors may share elements", "", ""};
  return {};
}

bool JitReplay::is_view(const JitUpdate& update) const {
  return !update.is_gradient && states_[update.tensor]->links.base;
}

// Whether a call of the function may refuse what this one assigns: a part of a leaf, or elements that
// another tensor of the call shows.
bool JitReplay::may_refuse_writes() {
  for (const JitUpdate& update : recording_.updates)
    if (is_view(update) && engine::is_part_of_leaf(*states_[update.tensor])) return true;
  return has_overlaps();
}

// Views show the same part of a tensor as long as both live, so the last answer is kept.
bool JitReplay::has_overlaps() {
  const auto is_linked = [](const engine::StatePtr& s) { return s->links.base || s->links.first; };
  const auto assigns_to = [&](const JitUpdate& update) {
    return !update.is_gradient && is_linked(states_[update.tensor]);
  };
  if (std::ranges::none_of(recording_.updates, assigns_to)) return false;
  std::vector<uint64_t> apart;
  for (const engine::StatePtr& state : states_)
    if (is_linked(state))
      apart.insert(apart.end(), {state->number, engine::outermost(*state).number});
  if (apart == recording_.apart) return false;
  for (const JitUpdate& update : recording_.updates | std::views::filter(assigns_to))
    for (const engine::StatePtr& other : states_)
      if (const engine::StatePtr& assigned = states_[update.tensor];
          other != assigned && session_.may_overlap(*assigned, *other))
        return true;
  recording_.apart = std::move(apart);
  return false;
}

bool JitReplay::has_the_gradients() const {
  for (size_t i = 0; i < states_.size(); ++i) {
    const JitTensor& tensor = recording_.tensors[i];
    if (!states_[i] || (!tensor.has_no_gradient && tensor.gradient_facts.empty())) continue;
    if ((states_[i]->grad == nullptr) != tensor.has_no_gradient) return false;
  }
  return true;
}

bool JitReplay::has_captured_arguments() const {
  for (size_t i = 0; i < states_.size(); ++i)
    if (recording_.tensors[i].may_be_captured &&
        !is_same_owner(recording_.tensors[i].state, std::weak_ptr<engine::TensorState>(states_[i])))
      return false;
  return true;
}

// Whether the tensors have the recorded counted axes, sharing counts as recorded. Stores handles,
// since ids may change later.
bool JitReplay::has_the_counts() {
  counts_.assign(recording_.values.size(), nullptr);
  for (size_t i = 0; i < states_.size(); ++i) {
    const std::vector<JitCount>& counts = recording_.tensors[i].counts;
    const Id node = states_[i]->node;
    const auto axes = std::ranges::count_if(
        counts, [](const JitCount& c) { return c.axis != JitCount::kItself; });
    if (axes == 0 && session_.is_counted(node)) return false;
    for (const JitCount& c : counts) {
      Id count = node;
      if (c.axis != JitCount::kItself) {
        if (!session_.is_counted(node)) return false;
        const std::vector<Extent>& extents = session_.extents_of(node);
        if (!extents[c.axis].is_counted() ||
            std::ranges::count_if(extents, &Extent::is_counted) != axes)
          return false;
        count = extents[c.axis].count;
      }
      engine::StatePtr& known = counts_[c.value];
      if (known && known->node != count) return false;
      if (!known) known = session_.make(count);
    }
  }
  return true;
}

JitOutput JitReplay::run(WriteView write_view) {
  const Guard guard(session_.mutex());
  const trace::Scope span(trace::Category::Jit, "replay");
  session_.safe_point();
  require_no_tape();
  require_indices();
  bind();
  run_plans();
  JitOutput output = results();
  const engine::Session::StepScope all_or_none;
  for (const JitUpdate& each : recording_.updates)
    if (is_view(each)) {
      const engine::StatePtr value = session_.make(node_of(each.to), 0);
      write_view(*states_[each.tensor], *value);
    }
  std::vector<Updated> nodes;
  for (const JitUpdate& each : recording_.updates) nodes.push_back(updated(each));
  for (uint32_t tensor : recording_.marked) session_.prepare_to_denote(*states_[tensor], true);
  for (const JitUpdate& each : recording_.updates)
    session_.prepare_to_denote(*states_[each.tensor], states_[each.tensor]->requires_grad);
  // From here on nothing needs memory: either all tensors change or none.
  session_.random().counter += recording_.random_words;
  for (uint32_t tensor : recording_.marked) session_.set_requires_grad(*states_[tensor], true);
  for (size_t i = 0; i < nodes.size(); ++i) update(recording_.updates[i], std::move(nodes[i]));
  all_or_none.done();
  session_.state().maybe_garbage = true;
  return output;
}

void JitReplay::require_no_tape() {
  if (!recording_.takes_gradients) return;
  for (const engine::StatePtr& state : states_)
    require(state->requires_grad || !session_.is_tracked(state->node),
            "[jit] an argument of shape ({}) was computed of tensors that are marked with "
            "requires_grad_(), and gradients do not flow out of a jitted call; detach() it",
            fmt::join(session_.shape(state->node), ", "));
}

void JitReplay::require_indices() {
  for (const JitIndices& indices : recording_.indices)
    if (const auto known = session_.peek(source_of(recording_.values[indices.value])))
      indices.range.require_of(*known);
}

engine::TensorState& JitReplay::source_of(const JitValue& value) {
  if (value.kind == JitValue::Kind::Count)
    return *counts_[static_cast<size_t>(&value - recording_.values.data())];
  engine::TensorState& state = *states_[value.tensor];
  return value.kind == JitValue::Kind::Gradient ? *state.grad : state;
}

Id JitReplay::base_of(const engine::TensorState& state) const {
  const Graph& graph = session_.graph();
  Id base = state.node;
  while (!session_.state().values.find(base) && session_.shows_source(base))
    base = graph.sources(base)[0];
  return base;
}

// The stored value that has exactly the state's elements in order; null if there is none.
engine::ValuePtr JitReplay::quick_value(const engine::TensorState& state) {
  const Id base = base_of(state);
  const engine::Value* value = session_.state().values.find(base);
  return value && session_.devices()[base] != 0 ? session_.state().values.share(base) : nullptr;
}

void JitReplay::bind() {
  values_.resize(recording_.values.size());
  std::vector<engine::TensorState*> missing;
  std::vector<uint32_t> missing_numbers;
  for (uint32_t i = 0; i < values_.size(); ++i) {
    const JitValue& value = recording_.values[i];
    if (value.kind == JitValue::Kind::Fixed) values_[i] = value.value;
    if (value.kind == JitValue::Kind::Random) values_[i] = random_key(value);
    if (value.kind != JitValue::Kind::Tensor && value.kind != JitValue::Kind::Gradient &&
        value.kind != JitValue::Kind::Count)
      continue;
    engine::TensorState& source = source_of(value);
    if ((values_[i] = quick_value(source)) || (values_[i] = value_of_constant(session_, source)))
      continue;
    missing.push_back(&source);
    missing_numbers.push_back(i);
  }
  if (missing.empty()) return;
  session_.realize(missing);
  for (size_t i = 0; i < missing.size(); ++i)
    values_[missing_numbers[i]] = session_.readable_value(*missing[i]);
}

engine::ValuePtr JitReplay::random_key(const JitValue& recorded) {
  const engine::RandomState& now = session_.random();
  auto key = std::make_shared<std::array<uint32_t, 2>>(
      recorded.key({now.seed, now.counter + recorded.counter}));
  auto value = std::make_shared<engine::Value>();
  value->dtype = DType::U32;
  value->device = recorded.device;
  value->size_bytes = sizeof *key;
  value->host = std::as_bytes(std::span(*key));
  value->host_owner = std::move(key);
  return value;
}

// Only the last plan may donate inputs: a failure before it leaves every tensor unchanged.
std::vector<engine::ValuePtr> JitReplay::run_one(const JitRun& run,
                                                 std::span<const engine::ValuePtr> inputs,
                                                 bool is_last) {
  return is_last && !run.ready->plan.donations.empty() ? run_donating(run, inputs)
                                                       : session_.run_ready(*run.ready, inputs);
}

std::vector<engine::ValuePtr> JitReplay::run_with_constants(JitConstants& constants,
                                                            std::vector<engine::ValuePtr>& inputs,
                                                            bool is_last) {
  constants.add_results(inputs, session_.state().constants,
                        [&](engine::ReadyPlan& ready, std::span<const engine::ValuePtr> of) {
                          return session_.run_ready(ready, of);
                        });
  return run_one(constants.rest(), inputs, is_last);
}

void JitReplay::find_constants() {
  engine::SessionState& state = session_.state();
  if (recording_.constants.size() == recording_.runs.size()) return;
  std::vector<std::shared_ptr<engine::ReadyPlan>> plans;
  for (const JitRun& run : recording_.runs)
    if (run.ready) plans.push_back(run.ready);
  engine::refine(plans, state.kernels);
  auto found =
      constants_of(recording_, [&](uint32_t device) { return state.constants.bytes_on(device); });
  for (const auto& constants : found)
    if (constants) state.constants.add(constants->kept());
  recording_.constants = std::move(found);
}

/// Takes a sharded value apart, or joins parts.
void JitReplay::regroup(const JitRun& run) {
  if (!run.joined) {
    const engine::ShardedParts& whole = *values_[run.inputs[0]]->sharded;
    size_t next = 0;
    for (const engine::ValuePtr& part : whole.parts)
      if (part) values_[run.roots[next++]] = part;
    return;
  }
  engine::ShardedParts parts{run.joined->sharded->spec, {}};
  size_t next = 0;
  for (const bool is_here : run.is_here)
    parts.parts.push_back(is_here ? values_[run.inputs[next++]] : nullptr);
  auto whole = std::make_shared<engine::Value>(*run.joined);
  whole->sharded = std::make_shared<const engine::ShardedParts>(std::move(parts));
  values_[run.roots[0]] = std::move(whole);
}

void JitReplay::run_plans() {
  find_constants();
  std::vector<engine::ValuePtr> inputs, roots;
  const auto is_plan = [](const JitRun& run) { return run.ready != nullptr; };
  const auto behind_plans =
      std::ranges::find_if(recording_.runs.rbegin(), recording_.runs.rend(), is_plan);
  const auto plans_end = static_cast<size_t>(recording_.runs.rend() - behind_plans);
  for (size_t i = 0; i < recording_.runs.size(); ++i) {
    const JitRun& run = recording_.runs[i];
    JitConstants* const constants = recording_.constants[i].get();
    if (!run.ready) {
      regroup(run);
      continue;
    }
    const bool is_last = i + 1 == plans_end;
    inputs.clear();
    for (uint32_t number : run.inputs) inputs.push_back(values_[number]);
    bool is_done = false;
    if (constants && !constants->is_dropped()) try {
        roots = run_with_constants(*constants, inputs, is_last);
        is_done = true;
      } catch (const OutOfMemoryError&) {  // no input is overwritten yet
        constants->kept()->drop();
        inputs.resize(run.inputs.size());
      }
    if (!is_done) roots = run_one(run, inputs, is_last);
    for (size_t r = 0; r < roots.size(); ++r) values_[run.roots[r]] = std::move(roots[r]);
  }
}

// Results that share a count share its node; a count of the arguments keeps its own node.
Id JitReplay::count_node(uint32_t value) {
  engine::StatePtr& known = counts_[value];
  if (!known) {
    const Id node = session_.add_buffer(session_.graph(), {}, DType::I32, values_[value]->device);
    session_.state().values.set(node, values_[value]);
    known = session_.make(node);
  }
  return known->node;
}

// The node that a tensor denotes from now on.
Id JitReplay::node_of(const JitResult& result) {
  if (result.kind == JitResult::Kind::Constant) return result.constant->node;
  const engine::ValuePtr& value = values_[result.number];
  Id node = session_.add_buffer(session_.graph(), result.shape, value->dtype, value->device);
  session_.state().values.set(node, value);
  for (const JitCount& c : result.counts)
    node = session_.bound(node, c.axis, count_node(c.value), c.least);
  return node;
}

// Processes compare the results that they read.
engine::StatePtr JitReplay::made(const JitResult& result) {
  engine::StatePtr state =
      session_.make(node_of(result), result.constant ? result.constant->device : 0);
  if (session_.mesh(session_.devices()[state->node]) == nullptr) return state;
  auto& functions = engine::RecordedFunctions::of_this_thread();
  functions.add("jit", 0, session_.graph()[state->node].dtype, session_.shape(state->node),
                session_.spec(state->node));
  state->recorded = functions.number();
  return state;
}

JitOutput JitReplay::results() {
  JitOutput output{{}, recording_.structure};
  for (const JitResult& result : recording_.results) {
    switch (result.kind) {
      case JitResult::Kind::Undefined:
        output.tensors.push_back(nullptr);
        break;
      case JitResult::Kind::Tensor:
        output.tensors.push_back(states_[result.number]);
        break;
      case JitResult::Kind::Same:
        output.tensors.push_back(output.tensors[result.number]);
        break;
      case JitResult::Kind::Value:
      case JitResult::Kind::Constant:
        output.tensors.push_back(made(result));
    }
  }
  return output;
}

JitReplay::Updated JitReplay::updated(const JitUpdate& update) {
  if (is_view(update)) return {};
  if (!update.is_gradient) {
    const Id node = node_of(update.to);
    return {node, nullptr, session_.nodes_of_views(*states_[update.tensor], node)};
  }
  switch (update.to.kind) {
    case JitResult::Kind::Undefined:
      return {};
    case JitResult::Kind::Tensor:
      return {kNoId, states_[update.to.number], {}};
    default:
      return {kNoId, session_.make(node_of(update.to), states_[update.tensor]->device), {}};
  }
}

void JitReplay::update(const JitUpdate& update, Updated&& to) noexcept {
  engine::TensorState& state = *states_[update.tensor];
  if (update.is_gradient) {
    state.grad = std::move(to.grad);
    return;
  }
  if (to.node == kNoId) return;
  session_.denote(state, to.node);
  if (state.pending) std::erase(session_.state().pending, &state);
  state.pending = false;
  session_.state().replaced.erase(&state);
  session_.show(to.shown);
}

}  // namespace plugrad::jit_detail
