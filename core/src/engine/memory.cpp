// Collects garbage: marks the values that live states need, drops the others, renumbers the graph.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "distributed/backend.h"
#include "engine/session_state.h"
#include "engine/views.h"

namespace plugrad::engine {

using Guard = std::lock_guard<InterpreterAwareMutex>;

namespace {

// Processes must agree on which values a node finds that is recorded again, and so drop those that
// nothing reaches as soon as they can, whatever else each has in memory.
bool is_one_of_several() {
  const distributed::Backend* const backend = distributed::backend();
  return backend != nullptr && backend->size() > 1;
}

// Marks of a node: it is live, its value is needed, a gradient may flow to it, its sources are not
// followed.
constexpr uint8_t kLive = 1, kNeeded = 2, kForGradient = 4, kEnds = 8;

// Whether the value of a lost base cannot be made of what its views show.
bool has_expanded_view(const TensorState& base) {
  for (const TensorState* view = base.links.first; view; view = view->links.next)
    if (view->links.writes == detail::ViewLinks::Writes::Expanded) return true;
  return false;
}

}  // namespace

// A node that has a value needs its sources only if a gradient may flow to them or if it has
// counted axes.
bool Session::needs_no_inputs(Id id, bool for_gradient) {
  return state_->values.find(id) && !is_counted(id) &&
         !(for_gradient && state_->tape.has_tracked_source(graph_, id));
}

// The marks that a node passes to its sources. A value of constants alone may be recomputed on
// another device, so its sources keep their nodes but not their values.
uint8_t Session::marks_below(Id id, uint8_t marks) {
  const bool for_gradient = marks & kForGradient;
  if (needs_no_inputs(id, for_gradient)) {
    const bool may_move = (*devices_)[id] == 0 && !state_->values.find(id)->is_assigned;
    return may_move || !(marks & kNeeded) ? kLive : 0;
  }
  const bool flows = for_gradient && state_->tape.has_tracked_source(graph_, id);
  return static_cast<uint8_t>(kLive | (marks & kNeeded) | (flows ? kForGradient : 0));
}

// Sources have lower ids, so one downward sweep visits every node after all its users.
const std::vector<Id>& Session::mark() {
  auto& marks = state_->marks;
  auto& live = state_->live;
  marks.assign(graph_.size(), 0);
  live.clear();
  state_->each_state([&](TensorState& state) {
    if (!std::ranges::binary_search(state_->leaving, &state))
      marks[state.node] = kLive | kNeeded | kForGradient;
  });
  state_->each_lost_base([&](TensorState& base) {
    if (base.node != kNoId && has_expanded_view(base)) marks[base.node] |= kLive | kNeeded;
  });
  for (Id id = graph_.size(); id-- > 0;) {
    if (marks[id] == 0) continue;
    live.push_back(id);
    const uint8_t below = marks_below(id, marks[id]);
    if (below == 0) marks[id] |= kEnds;
    for (Id source : graph_.sources(id)) marks[source] |= below;
  }
  std::ranges::reverse(live);
  return live;
}

// A dead call's function may hold the last use of other calls, so this repeats until nothing dies.
const std::vector<Id>& Session::mark_without_dead_calls() {
  while (true) {
    const size_t states = state_->state_count;
    const std::vector<Id>& reached = mark();
    functions_.retain(graph_, reached);
    if (state_->state_count == states) return reached;
  }
}

// Nothing that lives needs the value of a lost base: it may no longer be computed.
void Session::note_lost_values() {
  state_->each_lost_base([&](TensorState& base) {
    if (base.node != kNoId && !(state_->marks[base.node] & kNeeded)) base.node = kNoId;
  });
}

void Session::note_marked() {
  state_->maybe_garbage = state_->maybe_unreached_value = state_->has_values_between = false;
  if (is_one_of_several())
    state_->values.retain([&](Id id) {
      state_->has_values_between |= graph_[id].op != Op::Buffer && !state_->computed.is_held(id);
      return true;
    });
  state_->new_cost = 0;
  ++state_->statistics.collections;
}

void Session::forget_unreached() {
  const bool has_leaves = state_->tape.has_leaves();
  if (has_leaves) remark_leaves();  // leaves that died since then no longer need a tape
  mark_without_dead_calls();
  note_lost_values();
  if (has_leaves)
    state_->each_state([&](TensorState& state) {
      std::erase_if(state.earlier, [&](Id node) { return state_->marks[node] == 0; });
    });
  if (lowering_) lowering_->clear();
  const size_t dropped =
      state_->values.retain([&](Id id) { return (state_->marks[id] & kNeeded) != 0; });
  note_marked();
  if (debugging(5)) debug_write(fmt::format("memory: dropped {} unreachable values\n", dropped));
}

// Called before `new_bytes` are allocated.
void Session::reclaim(uint64_t new_bytes, bool must) {
  // Another thread inside the session frees memory itself when it needs some.
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard) return;
  state_->note_new_value(new_bytes);
  if (locks_held_ == 0 && (must || state_->is_marking_due(graph_.size()))) forget_unreached();
}

void Session::safe_point() {
  if (locks_held_ > 0) return;
  if (graph_.size() > state_->renumber_above)
    renumber();
  else if (state_->is_marking_due(graph_.size()) ||
           (state_->maybe_unreached_value && is_one_of_several()))
    forget_unreached();
}

void Session::collect() {
  const Guard guard(mutex_);
  ensure(locks_held_ == 0, "collect() inside a Session::Lock");
  renumber();
}

void Session::remark_leaves() {
  state_->tape.reserve(graph_.size());  // first: no mark may be lost if memory runs out
  state_->tape.clear_leaves();
  state_->each_state([&](const TensorState& state) {
    for (Id node : state.earlier) state_->tape.mark_earlier(node);
  });
  state_->each_state([&](const TensorState& state) {
    if (state.requires_grad) state_->tape.mark_leaf(state.node);
  });
}

// Copies the node into `graph`; a node that needs no sources becomes a Buffer.
Id Session::copy_node(Graph& graph, Id id, const std::vector<Id>& new_id) {
  const Node& node = graph_[id];
  if (node.op != Op::Buffer && (state_->marks[id] & kEnds))
    return add_buffer(graph, shape(id), node.dtype, state_->values.find(id)->device);
  std::vector<Id> sources;
  for (Id source : graph_.sources(node)) sources.push_back(new_id[source]);
  const bool has_list = op_info(node.op).arg == ArgKind::List;
  return graph.add(node.op, node.dtype, sources,
                   has_list ? graph.list(graph_.arg_list(id)) : node.arg);
}

// Memory may run out: makes everything for the new graph before it changes anything.
void Session::renumber() {
  remark_leaves();  // leaves that died since then no longer need a tape
  keep_paths();
  const uint32_t old_size = graph_.size();
  Graph graph;
  ValueTable values;
  std::vector<Id> new_id(old_size, kNoId);
  mark_without_dead_calls();
  note_lost_values();
  for (Id id : state_->live) {
    new_id[id] = copy_node(graph, id, new_id);
    if (state_->values.find(id) && (state_->marks[id] & kNeeded))
      values.set(new_id[id], state_->values.share(id));
  }
  NodeOrigins operations = state_->operations.renumbered(new_id);
  NodeOrigins places = state_->places.renumbered(new_id);
  ComputedNodes computed = state_->computed.renumbered(new_id);
  Tape tape = state_->tape.renumbered(new_id);
  tape.reserve(graph.size());
  HeldNodes held;
  state_->each_state(
      [&](const TensorState& state) { computed.hold(held.of(graph, new_id[state.node])); });
  if (lowering_) make_lowering();

  const auto move = [&](std::vector<Id>& nodes) {
    for (Id& node : nodes) node = new_id[node];
    std::erase(nodes, kNoId);
  };
  for (auto& [state, nodes] : state_->versions) move(nodes);
  graph_ = std::move(graph);
  ++state_->graph_number;
  state_->each_state([&](TensorState& state) {
    state.node = new_id[state.node];
    move(state.earlier);
  });
  state_->operations = std::move(operations);
  state_->places = std::move(places);
  state_->computed = std::move(computed);
  state_->tape = std::move(tape);
  state_->held = std::move(held);
  state_->each_lost_base([&](TensorState& base) {
    if (base.node != kNoId) base.node = new_id[base.node];
  });
  state_->values = std::move(values);
  shapes_->clear();
  devices_->clear();
  extents_->clear();
  remark_leaves();
  state_->renumber_above = std::max(SessionState::kSmallGraph, 2 * graph_.size());
  note_marked();
  if (debugging(5))
    debug_write(fmt::format("memory: renumbered, {} of {} nodes live\n", graph_.size(), old_size));
}

}  // namespace plugrad::engine
