// Turns states into values: finds the nodes to compute, finds or makes their plan, and runs it.
#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace/trace.h"
#include "engine/plan/options.h"
#include "engine/plan/plan_cache.h"
#include "engine/realize/distinct_roots.h"
#include "engine/realize/stopwatch.h"
#include "engine/realize/work.h"
#include "engine/recording/call_observer.h"
#include "engine/recording/cut_call.h"
#include "engine/session_state.h"
#include "engine/views.h"

namespace plugrad::engine {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;

bool is_weak(DType dtype) {
  return dtype == DType::Index || dtype == DType::WeakFloat;
}

// Computed sizes and reports that the walk reached become roots too, so that they can be checked.
template <class Walk>
void walk_with_sizes(const CanonicalGraph& canonical, std::span<const Id> roots, const Walk& walk) {
  std::vector<Id> all(roots.begin(), roots.end());
  for (Id size : canonical.computed_sizes())
    if (std::ranges::find(all, size) == all.end()) all.push_back(size);
  if (all.size() > roots.size()) walk(all);
}

void note_origins(ReadyPlan& ready, std::vector<Origins> by_root) {
  std::map<Origins, uint32_t> known;
  for (Origins& origins : by_root) {
    const auto [at, is_new] =
        known.try_emplace(std::move(origins), static_cast<uint32_t>(known.size()));
    ready.origins_of.push_back(at->second);
  }
  ready.origins.resize(known.size());
  while (!known.empty()) {
    auto entry = known.extract(known.begin());
    ready.origins[entry.mapped()] = std::move(entry.key());
  }
}

// Roots get the checks of the sizes that they depend on, and those of their inputs.
void inherit_pending_checks(const ReadyPlan& ready, std::span<const ValuePtr> inputs,
                            std::span<const ValuePtr> roots) {
  const auto has_pending_checks = [](const ValuePtr& v) { return v && v->pending_checks; };
  if (ready.sizes.empty() && std::ranges::none_of(inputs, has_pending_checks)) return;
  std::vector<std::shared_ptr<PendingSizeChecks>> pending_checks;
  for (const Origins& origins : ready.origins)
    pending_checks.push_back(pending_checks_of(origins, ready.sizes, inputs, roots));
  for (size_t root = 0; root < roots.size(); ++root)
    roots[root]->pending_checks = pending_checks[ready.origins_of[root]];
}

}  // namespace

// A node of constants alone has a value for each device that computed it; only the last is kept.
bool Session::is_stored(Id base, uint32_t device) {
  const Value* value = state_->values.find(base);
  if (!value || graph_[base].op == Op::Const) return graph_[base].op == Op::Const;
  if ((*devices_)[base] != 0) return true;
  return value->device == (device == 0 ? default_device() : device);
}

// The node that must have a value for `node` to have one: below all views if that node has a value
// already, else below the views that keep every element. Constants need no value.
Id Session::stored_base(Id node, uint32_t device) {
  Id bottom = node;
  while (!is_stored(bottom, device) && is_view(graph_[bottom].op))
    bottom = graph_.sources(bottom)[0];
  if (is_stored(bottom, device)) return bottom;
  Id base = node;
  while (keeps_every_element(graph_[base].op)) base = graph_.sources(base)[0];
  return base;
}

// Weak literals become i32 or f32 when they are stored.
void Session::make_strong(TensorState& state) {
  if (is_weak(graph_[state.node].dtype))
    denote(state, graph_.cast(state.node, strong_dtype(graph_, state.node)));
}

bool Session::is_realized(const TensorState& state) {
  const Guard guard(mutex_);
  return is_stored(stored_base(state.node, state.device), state.device);
}

// The distinct nodes to compute, grouped by the device that computes nodes of constants alone.
Session::RootGroups Session::missing_roots(States states) {
  RootGroups groups;
  for (TensorState* state : states) {
    const auto base_of = [&] { return stored_base(state->node, state->device); };
    if (!is_stored(base_of(), state->device)) make_strong(*state);
    const Id base = base_of();
    if (is_stored(base, state->device)) continue;
    if (state->recorded != 0) state_->reads.push_back(state->recorded);
    const bool free = (*devices_)[base] == 0 && state->device != 0;
    groups[free ? state->device : 0].push_back(base);
  }
  for (auto& [device, roots] : groups) {  // keep the order: it is part of the plan's key
    DistinctRoots distinct;
    for (Id root : roots) distinct.add(root);
    roots = distinct.take();
  }
  return groups;
}

void Session::realize(States states) {
  const Guard guard(mutex_);
  safe_point();
  state_->reads.clear();
  for (const auto& [device, roots] : missing_roots(states)) {
    const auto values = compute(roots, device == 0 ? default_device() : device);
    for (size_t i = 0; i < roots.size(); ++i) state_->values.set(roots[i], values[i]);
  }
  settle(states);
}

void Session::realize(TensorState& state) {
  TensorState* const one[] = {&state};
  realize(one);
}

void Session::realize_with_pending(States states) {
  const Guard guard(mutex_);
  std::vector<TensorState*> all(states.begin(), states.end());
  all.insert(all.end(), state_->pending.begin(), state_->pending.end());
  realize(all);
}

// The states have values now: they are no longer pending, and keep their inputs only for a gradient.
// Another tensor may denote the node of a leaf, as x.reshape(x.shape()) does, which then is its input.
// Without memory to cut one of them all stay pending, and an optimiser's step can be undone.
void Session::settle(States states) {
  for (TensorState* const state : states) {
    const Id base = stored_base(state->node, state->device);
    Tape& tape = state_->tape;
    const bool has_history = state->requires_grad
                                 ? !state->pending && tape.has_tracked_source(graph_, state->node)
                                 : tape.is_tracked(graph_, state->node);
    if (!has_history) cut(*state, base);
  }
  for (TensorState* const state : states) {
    state_->forget_assignments(state);
    state_->step_assigned.erase(state);
  }
}

void Session::cut(TensorState& state, Id base) {
  const Op op = graph_[base].op;
  if (op == Op::Buffer || op == Op::Const) return;
  const std::vector<Extent> extents = has_bounds_ ? (*extents_)[state.node] : std::vector<Extent>();
  std::vector<Id> views;
  for (Id id = state.node; id != base; id = graph_.sources(id)[0])
    if (graph_[id].op != Op::Function && graph_[id].op != Op::Bounded)  // for gradients only
      views.push_back(id);
  const ValuePtr value = state_->values.share(base);
  Id node = add_buffer(graph_, std::vector<int64_t>(shape(base).begin(), shape(base).end()),
                       value->dtype, value->device);
  state_->values.set(node, value);
  for (auto view = views.rbegin(); view != views.rend(); ++view)
    node = graph_.with_sources(*view, std::span(&node, 1));
  denote(state, with_extents(node, extents));
  state_->maybe_garbage = true;
}

void Session::cut_tape(TensorState& state) {
  const Guard guard(mutex_);
  realize(state);
  while (graph_[state.node].op == Op::Detach) denote(state, graph_.sources(state.node)[0]);
  cut(state, stored_base(state.node, state.device));
}

void Session::walk(std::span<const Id> roots, uint32_t default_device) {
  const auto walk_from = [&](std::span<const Id> from) {
    state_->canonical.walk(graph_, *shapes_, *devices_, only_device(roots, default_device),
                           state_->values, from);
  };
  walk_from(roots);
  if (may_have_checks()) walk_with_sizes(state_->canonical, roots, walk_from);
}

schedule::Plan Session::plan_of(CanonicalScratch scratch, const PlanRequest& request) {
  Statistics& statistics = state_->statistics;
  const Stopwatch watch(statistics.schedule_ns);
  const trace::Scope span(trace::Category::Plan, "plan");
  statistics.planned_nodes += scratch.graph.size();
  schedule::Options kept = request.options;
  kept.keep_graph |= tracing();
  schedule::Plan plan = schedule::make_plan(scratch.graph, scratch.roots, scratch.inputs,
                                            request.default_device, kept);
  statistics.planning_visits += plan.visits;
  state_->walked = std::move(scratch.walked);
  return plan;
}

// The origin of each value of the plan made last. A node that planning made has that of the node
// that reads it.
std::vector<uint32_t> Session::origins_of(const schedule::ScheduledGraph& scheduled,
                                          const NodeOrigins& of_nodes) const {
  const std::vector<Id>& walked = state_->walked;
  std::vector<uint32_t> by_id(scheduled.graph.size(), 0);
  for (const auto& value : scheduled.values)
    if (value.source != kNoId && walked[value.source] != kNoId)
      by_id[value.id] = of_nodes.of(walked[value.source]);
  std::vector<uint32_t> origins(scheduled.values.size());
  for (size_t i = origins.size(); i-- > 0;) {
    const Id id = scheduled.values[i].id;
    origins[i] = by_id[id];
    for (const Id source : scheduled.graph.sources(id))
      if (by_id[source] == 0) by_id[source] = by_id[id];
  }
  return origins;
}

schedule::Plan Session::planned(std::span<const Id> roots, uint32_t default_device) {
  Work work;
  work.roots = {roots.begin(), roots.end()};
  walk(work.roots, default_device);
  if (add_along(work, default_device)) walk(work.roots, default_device);
  schedule::Plan plan = plan_of(state_->canonical.copy(), request_of_walk(default_device));
  state_->canonical.take_inputs();
  return plan;
}

// An earlier process may have made the plan.
schedule::Plan Session::kept_or_made(const Hash128& key,
                                     const std::function<schedule::Plan()>& make) {
  std::string on_disk;
  {
    const Stopwatch watch(state_->statistics.lookup_ns);
    on_disk = plan_key_on_disk(key);
    if (std::optional<schedule::Plan> kept = find_plan(on_disk)) {
      ++state_->statistics.plans_from_disk;
      return *std::move(kept);
    }
  }
  schedule::Plan plan = make();
  keep_plan(on_disk, plan);
  return plan;
}

// Kernels get the schedules of the plan `like`, if there is one.
std::shared_ptr<ReadyPlan> Session::ready_of(schedule::Plan plan, const PlanRequest& request,
                                             const ReadyPlan* like) {
  Statistics& statistics = state_->statistics;
  auto ready = std::make_shared<ReadyPlan>();
  ready->plan = std::move(plan);
  if (ready->plan.scheduled)
    ready->trace = {0,
                    ready->plan.scheduled,
                    origins_of(*ready->plan.scheduled, state_->operations),
                    {},
                    {},
                    false,
                    std::make_shared<const RecordedGraph>(recorded_graph(*state_, graph_))};
  if (may_have_checks()) ready->sizes = state_->canonical.sizes(index_ranges_);
  note_origins(*ready, state_->canonical.origins(ready->sizes));
  if (ready->plan.scheduled && lowering_)
    ready->trace.sharding =
        plan_sharding(*lowering_, *state_, graph_, *shapes_, *ready->plan.scheduled);
  const Stopwatch watch(statistics.compile_ns);
  const trace::Scope span(trace::Category::Compile, "make kernels");
  try {
    prepare(*ready, state_->devices, state_->kernels, user_kernels_, request.kernels, like,
            request.options.constants);
  } catch (Error& error) {
    if (const auto failed = state_->kernels.failed())
      name_places_of_request(error, *failed, request);
    throw;
  }
  prepare_loops(*ready, request.kernels);
  ++statistics.plans_made;
  return ready;
}

// 0 if the roots are on several devices.
uint32_t Session::only_device(std::span<const Id> roots, uint32_t default_device) {
  uint32_t only = 0;
  for (Id root : roots) {
    const uint32_t own = (*devices_)[root] == 0 ? default_device : (*devices_)[root];
    if (only != 0 && only != own) return 0;
    only = own;
  }
  return only;
}

// For the graph just walked; constants alone are computed on the default device.
PlanRequest Session::request_of_walk(uint32_t default_device) {
  const auto used = state_->canonical.devices_used();
  PlanRequest request{
      default_device,
      plan_options(state_->devices, used.empty() ? std::span(&default_device, 1) : used),
      KernelOptions::from_settings()};
  request.options.replaced = state_->replaced_inputs(state_->canonical.inputs());
  // With fixed schedules a call must get the same plan whether it is recorded or not.
  if (CallObserver* observer = CallObserver::active(); observer && !request.kernels.deterministic)
    request.options.constants = observer->constant_inputs(state_->canonical.inputs());
  return request;
}

// A cached plan may add roots; the extended set of roots is then looked up in turn.
Session::Work Session::work_for(std::span<const Id> roots, uint32_t default_device,
                                bool stores_along) {
  Statistics& statistics = state_->statistics;
  Work work;
  work.roots = {roots.begin(), roots.end()};
  const uint64_t start_ns = tracing() ? monotonic_ns() : 0;
  {
    const Stopwatch watch(statistics.lookup_ns);
    walk(work.roots, default_device);
    if (stores_along && add_along(work, default_device)) walk(work.roots, default_device);
  }
  while (find_or_make(work, default_device, stores_along)) {
    const Stopwatch watch(statistics.lookup_ns);
    if (!stores_along || !add_learned(work, *work.ready->needed_again)) {
      ++statistics.plan_cache_hits;
      if (start_ns != 0) trace::span(trace::Category::Plan, "cached plan", start_ns, 1);
      return work;
    }
    walk(work.roots, default_device);
  }
  if (debugging(1))
    debug_write(fmt::format("planned {} steps for {} results\n", work.ready->plan.steps.size(),
                            work.roots.size()));
  return work;
}

std::vector<ValuePtr> Session::run_work(Work& work) {
  auto inputs = state_->canonical.take_inputs();
  if (work.length.plan) inputs = work.length.with_room(std::move(inputs), state_->devices);
  CutCall* const call = CutCall::active();
  const bool is_exact = work.numbers.empty() && !work.length.plan;
  const DonorScope donor(*this, call && !work.length.plan ? &work : nullptr, inputs);
  auto values = call && is_exact ? call->run(work.ready, inputs)
                                 : run_ready(*work.ready, inputs, work.numbers);
  if (work.length.plan) values = work.length.without_room(std::move(values));
  if (CallObserver* observer = CallObserver::active())
    observer->ran(work.ready, inputs, values);
  else
    note_computed(work);
  return values;
}

// On out of memory, retries without the nodes that would be stored along.
std::vector<ValuePtr> Session::compute_local(std::span<const Id> roots,
                                             uint32_t default_device) try {
  Work work = work_for(roots, default_device, true);
  state_->values.reserve(graph_.size() - 1);  // storing what is computed takes no memory
  std::vector<ValuePtr> values;
  try {
    values = run_work(work);
  } catch (const OutOfMemoryError&) {
    if (work.length.plan) work.length.family->refuse("the bound takes more memory than there is");
    if (!work.length.plan && work.roots.size() == roots.size()) throw;
    work = work_for(roots, default_device, false);
    values = run_work(work);
  }
  const size_t along = work.roots.size() - roots.size();
  if (along > 0)
    keep_along(std::span(work.roots).last(along), std::span(values).subspan(roots.size(), along));
  values.resize(roots.size());
  return values;
} catch (Error& error) {
  name_places(error, roots);
  throw;
}

std::vector<ValuePtr> Session::run_ready(ReadyPlan& ready, std::span<const ValuePtr> inputs,
                                         std::span<const uint64_t> numbers) {
  ++state_->statistics.plans_run;
  set_numbers(ready, numbers);
  const trace::Scope span(trace::Category::Run, "run plan");
  for (const SizeUse& use : ready.sizes)
    if (!use.is_root) know_size(*inputs[use.number]);
  const auto run = [&] {
    auto roots = run_plan(ready, inputs, state_->may_donate, state_->arenas, state_->devices,
                          state_->statistics);
    inherit_pending_checks(ready, inputs, roots);
    return roots;
  };
  try {
    return run();
  } catch (const OutOfMemoryError&) {
    // Retry after freeing everything that is not needed now.
    state_->arenas.release();
    reclaim(0, true);
    for (runtime::Device* device : state_->devices.opened()) device->flush_allocator_cache();
  }
  try {
    return run();
  } catch (const OutOfMemoryError&) {
    if (!state_->constants.drop()) throw;
    for (runtime::Device* device : state_->devices.opened()) device->flush_allocator_cache();
    return run();
  }
}

}  // namespace plugrad::engine
