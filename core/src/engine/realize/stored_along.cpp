// Selects the nodes that a plan stores beside the requested ones, so that no later plan recomputes
// them: assigned values, and nodes that a tensor denotes and earlier plans did not store.
#include <algorithm>
#include <set>

#include "base/settings.h"
#include "engine/realize/distinct_roots.h"
#include "engine/recording/call_observer.h"
#include "engine/recording/cut_call.h"
#include "engine/session_state.h"
#include "engine/views.h"
#include "ir/facts.h"

namespace plugrad::engine {
namespace {

// With `deterministic`, equal programs give equal bits: the stored nodes must then not depend on
// earlier reads, as stored sums may be ordered differently from fused ones.
bool follows_earlier_reads() {
  return !CallObserver::active() && !settings().deterministic;
}

}  // namespace

/// Whether the walk computes the node, and the plan may store it.
bool Session::is_computed(Id base, uint32_t device, uint32_t default_device) {
  if (!state_->canonical.computes(base) || is_stored(base, device)) return false;
  return (*devices_)[base] != 0 || device == 0 || device == default_device;
}

// The latest value of a pending state that the walk computes.
Id Session::latest_computed(TensorState& state, uint32_t default_device) {
  const auto base_of = [&](Id node) { return stored_base(node, state.device); };
  const Id now = base_of(state.node);
  if (is_stored(now, state.device)) return kNoId;
  if (is_computed(now, state.device, default_device)) return now;
  const auto versions = state_->versions.find(&state);
  if (versions == state_->versions.end()) return kNoId;
  auto& nodes = versions->second;
  for (size_t i = nodes.size(); i-- > 0;) {
    const Id base = base_of(nodes[i]);
    if (is_computed(base, state.device, default_device)) return base;
    if (!is_stored(base, state.device)) continue;
    nodes.erase(nodes.begin(), nodes.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  return kNoId;
}

// Stores an assigned value with the first result that needs it, so that it is computed once.
void Session::add_assigned(DistinctRoots& roots, uint32_t default_device) {
  for (TensorState* state : state_->pending)
    if (const Id base = latest_computed(*state, default_device); base != kNoId) roots.add(base);
}

// Marks stored earlier values of pending tensors as assigned.
void Session::note_assigned() {
  for (const auto& [state, nodes] : state_->versions)
    for (Id node : nodes) {
      const Id base = stored_base(node, state->device);
      if (graph_[base].op != Op::Const && is_stored(base, state->device))
        state_->values.find(base)->is_assigned = true;
    }
}

// Stores long chains of assignments that no result has needed yet: they keep all their inputs
// alive.
void Session::add_overdue(DistinctRoots& roots) {
  constexpr size_t kMostVersions = 16;  // chains of equal length share one compiled plan
  for (TensorState* state : state_->pending) {
    const auto versions = state_->versions.find(state);
    if (versions == state_->versions.end() || versions->second.size() < kMostVersions) continue;
    const Id base = stored_base(state->node, state->device);
    if ((*devices_)[base] != 0 && !is_on_mesh(base) && !is_stored(base, state->device))
      roots.add(base);
  }
}

// If one gradient of a backward() call is computed again, computes all of that call together.
bool Session::add_gradients(DistinctRoots& roots) {
  std::set<uint64_t> calls;
  std::vector<std::pair<uint64_t, Id>> missing;
  state_->each_state([&](const TensorState& leaf) {
    if (!leaf.requires_grad || !leaf.grad || leaf.grad->backward == 0) return;
    const Id base = stored_base(leaf.grad->node, leaf.grad->device);
    if (is_stored(base, leaf.grad->device) || (*devices_)[base] == 0 || is_on_mesh(base)) return;
    missing.emplace_back(leaf.grad->backward, base);
    if (state_->canonical.computes(base)) calls.insert(leaf.grad->backward);
  });
  std::ranges::reverse(missing);  // the list of states begins with the newest
  for (const auto& [call, base] : missing)
    if (calls.contains(call)) roots.add(base);
  return !calls.empty();
}

// Counts the nodes from `first` on that the plan recomputes and those that are new, and finds the plan
// that first computed the last of the former.
Session::Repeated Session::count_repeated(Id first) {
  const CanonicalGraph& walked = state_->canonical;
  Repeated repeated;
  for (uint32_t number = 0; number < walked.size(); ++number) {
    if (!is_work(number) || walked.id(number) < first) continue;
    const uint32_t plan = state_->computed.of(walked.id(number)).plan;
    ++(plan != 0 ? repeated.again : repeated.anew);
    if (plan != 0) repeated.last_plan = plan;
  }
  return repeated;
}

bool Session::is_work(uint32_t number) {
  const Id id = state_->canonical.id(number);
  return !state_->canonical.is_input(number) && (*devices_)[id] != 0 && !is_view(graph_[id].op);
}

// Adds the last values before the roots that tensors denoted when they were first computed, and
// notes, for each earlier plan, the values that it should have stored.
void Session::add_held(Work& work, DistinctRoots& roots, Id first) {
  const CanonicalGraph& walked = state_->canonical;
  constexpr uint32_t kUnneeded = UINT32_MAX;
  std::vector<uint32_t> plan_above(walked.size(), kUnneeded);  // the nearest plan above; 0: none
  for (uint32_t root : walked.roots()) plan_above[root] = 0;
  for (auto number = static_cast<uint32_t>(walked.size()); number-- > 0;) {
    uint32_t above = plan_above[number];
    if (above == kUnneeded || walked.is_input(number)) continue;
    const Id id = walked.id(number);
    const ComputedNodes::Note note = state_->computed.of(id);
    if (id >= first && note.was_held && note.plan != above && is_work(number)) {
      if (above == 0) roots.add(id);
      work.repeated.push_back(note);
      above = note.plan;
    }
    for (Id source : graph_.sources(id)) {
      uint32_t& below = plan_above[walked.number(source)];
      below = std::min(below, above);
    }
  }
}

// Adds recomputed nodes that a new node uses and that no tensor denoted, e.g. the input of a
// momentum once the next one is recorded. If such a node has more elements than every root and
// input (the mask of a scatter), adds its sources instead.
void Session::add_used_anew(DistinctRoots& roots) {
  const CanonicalGraph& walked = state_->canonical;
  const auto count = [&](uint32_t number) { return element_count(shape(walked.id(number))); };
  const auto is_anew = [&](uint32_t number) {
    return state_->computed.of(walked.id(number)).plan == 0;
  };
  std::vector<bool> used(walked.size());
  int64_t most = 1;
  for (uint32_t root : walked.roots()) {
    used[root] = true;
    most = std::max(most, count(root));
  }
  for (uint32_t number = 0; number < walked.size(); ++number)
    if (walked.is_input(number)) most = std::max(most, count(number));
  for (auto number = static_cast<uint32_t>(walked.size()); number-- > 0;) {
    if (walked.is_input(number)) continue;
    const bool passes_on = is_anew(number) || !is_work(number) || count(number) > most;
    if (used[number] && !passes_on) roots.add(walked.id(number));
    if (is_anew(number) || (used[number] && passes_on))
      for (Id source : graph_.sources(walked.id(number))) used[walked.number(source)] = true;
  }
}

// Notes the values that earlier parts of the call should have stored: this part recomputes them.
void Session::note_used_anew(Work& work, Id first) {
  DistinctRoots used;
  add_used_anew(used);
  for (const Id id : used.list())
    if (const ComputedNodes::Note note = state_->computed.of(id); id >= first && note.plan != 0)
      work.repeated.push_back(note);
}

// Stores what tensors denoted if a plan would recompute more nodes than it adds: the total work of
// any number of reads stays within a constant factor of the number of nodes. The parts of a call come
// again, so that they learn to recompute nothing.
void Session::add_repeated(Work& work, DistinctRoots& roots) {
  const CutCall* const call = CutCall::active();
  const bool is_part = call && call->first_node() != kNoId;
  const Id first =
      is_part ? call->first_node() : 0;  // what an earlier call computed is kept elsewhere
  const Repeated repeated = count_repeated(first);
  if (is_part ? repeated.again == 0 : repeated.again <= repeated.anew) return;
  const size_t before = roots.size();
  add_held(work, roots, first);
  if (is_part)
    note_used_anew(work, first);
  else if (roots.size() == before)
    add_used_anew(roots);
  if (add_gradients(roots))
    work.repeated.push_back({.plan = repeated.last_plan, .number = ComputedNodes::kGradients});
}

// Stores running totals of constants alone, to which many plans have added. Otherwise each plan
// would recompute the whole chain and differ from the previous plan.
void Session::add_grown_constants(DistinctRoots& roots, uint32_t default_device) {
  constexpr uint32_t kMostPlans = 4;
  const CanonicalGraph& walked = state_->canonical;
  std::vector<uint32_t> plans(walked.size());  // number of plans that computed the node's chain
  bool any = false;
  for (uint32_t number = 0; number < walked.size(); ++number) {
    const Id id = walked.id(number);
    if (walked.is_input(number) || (*devices_)[id] != 0) continue;
    const uint32_t own = state_->computed.of(id).plan;
    for (Id source : graph_.sources(id)) {
      const uint32_t below = state_->computed.of(source).plan;
      const uint32_t steps = own != 0 && below != 0 && own != below ? 1 : 0;
      plans[number] = std::max(plans[number], plans[walked.number(source)] + steps);
    }
    any = any || plans[number] >= kMostPlans;
  }
  if (!any || only_device(roots.list(), default_device) != default_device) return;
  std::vector<bool> is_below(walked.size());
  for (auto number = static_cast<uint32_t>(walked.size()); number-- > 0;) {
    const Id id = walked.id(number);
    if (plans[number] >= kMostPlans && !is_below[number] && may_store_constant(number)) {
      roots.add(id);
      is_below[number] = true;
    }
    if (is_below[number] && !walked.is_input(number))
      for (Id source : graph_.sources(id)) is_below[walked.number(source)] = true;
  }
}

// Whether a plan may store the node of constants alone and a tensor held it.
bool Session::may_store_constant(uint32_t number) {
  const Id id = state_->canonical.id(number);
  const ComputedNodes::Note note = state_->computed.of(id);
  return note.plan != 0 && note.was_held && !is_view(graph_[id].op) &&
         strong(graph_[id].dtype) == graph_[id].dtype;
}

bool Session::add_along(Work& work, uint32_t default_device) {
  const size_t before = work.roots.size();
  DistinctRoots roots(work.roots);
  add_assigned(roots, default_device);
  if (follows_earlier_reads()) {
    add_repeated(work, roots);
    add_grown_constants(roots, default_device);
    add_overdue(roots);
  }
  work.roots = roots.take();
  return work.roots.size() > before;
}

// Adds nodes that earlier runs of the same plan should have stored, if tensors hold them again; the
// parts of a call come again whatever is held.
bool Session::add_learned(Work& work, std::span<const uint32_t> needed_again) {
  if (needed_again.empty() || !follows_earlier_reads()) return false;
  const size_t before = work.roots.size();
  DistinctRoots roots(work.roots);
  for (uint32_t number : needed_again) {
    if (number == ComputedNodes::kGradients)
      add_gradients(roots);
    else if (const Id id = state_->canonical.id(number);
             state_->computed.is_held(id) || CutCall::active())
      roots.add(id);
  }
  if (roots.size() > before) add_held(work, roots);
  work.roots = roots.take();
  return work.roots.size() > before;
}

// Records what a run of the walked plan computed.
void Session::note_computed(const Work& work) {
  for (const ComputedNodes::Note& note : work.repeated) {
    const auto ready = state_->computed.plan(note.plan);
    if (!ready) continue;
    std::vector<uint32_t>& needed = *ready->needed_again;
    if (std::ranges::find(needed, note.number) == needed.end()) needed.push_back(note.number);
  }
  const CanonicalGraph& walked = state_->canonical;
  const auto& ready = work.ready;
  if (ready->number == 0) ready->number = state_->computed.add_plan(ready);
  std::vector<bool> is_root(walked.size());
  for (uint32_t root : walked.roots()) is_root[root] = true;
  for (uint32_t number = 0; number < walked.size(); ++number)
    if (!walked.is_input(number) && !is_root[number])
      state_->computed.note(walked.id(number), ready->number, number);
}

// Stores the results that were not requested; assignments among them are no longer pending.
void Session::keep_along(std::span<const Id> roots,
                         std::span<const std::shared_ptr<Value>> values) {
  for (size_t i = 0; i < roots.size(); ++i) state_->values.set(roots[i], values[i]);
  state_->has_values_between |= !roots.empty();
  note_assigned();
  std::vector<TensorState*> stored;
  for (TensorState* state : state_->pending)
    if (is_stored(stored_base(state->node, state->device), state->device)) stored.push_back(state);
  settle(stored);
}

}  // namespace plugrad::engine
