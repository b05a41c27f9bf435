// Which values are still wanted: marking from live states, dropping the rest, renumbering the
// graph.
#include <algorithm>

#include "base/check.h"
#include "base/log.h"
#include "engine/parts.h"
#include "engine/views.h"

namespace plugrad::engine {

using Guard = std::lock_guard<std::recursive_mutex>;

namespace {

// A node that has a value needs its inputs only for a gradient, or to know what of it counts. One
// of constants alone keeps them: it may be used on another device than that of its value.
bool needs_no_inputs(const ValueTable& values, Tape& tape, Session& session, Id id) {
  return values.find(id) && session.devices()[id] != 0 && !tape.is_tracked(session.graph(), id) &&
         !session.is_counted(id);
}

}  // namespace

const std::vector<Id>& Session::mark() {
  std::vector<Id> roots;
  roots.reserve(parts_->state_count);
  parts_->each_state([&](TensorState& state) {
    if (!std::ranges::binary_search(parts_->leaving, &state)) roots.push_back(state.node);
  });
  return parts_->reachable.from(graph_, roots, [&](Id id) {
    return needs_no_inputs(parts_->values, parts_->tape, *this, id);
  });
}

// What a dead call of a user's function held may have been the last use of other calls.
const std::vector<Id>& Session::mark_without_dead_calls() {
  while (true) {
    const size_t states = parts_->state_count;
    const std::vector<Id>& reached = mark();
    functions_.retain(graph_, reached);
    if (parts_->state_count == states) return reached;
  }
}

void Session::forget_unreached() {
  std::vector<bool> reached(graph_.size());
  for (Id id : mark_without_dead_calls()) reached[id] = true;
  const size_t dropped = parts_->values.retain([&](Id id) { return reached[id]; });
  parts_->maybe_garbage = false;
  ++parts_->statistics.collections;
  if (debugging(5)) debug_write(fmt::format("memory: dropped {} unreachable values\n", dropped));
}

void Session::reclaim(bool must) {
  // Another thread that is inside the session frees by itself when it needs memory.
  const std::unique_lock guard(mutex_, std::try_to_lock);
  if (!guard || locks_held_ > 0 || !(must || parts_->maybe_garbage)) return;
  forget_unreached();
}

void Session::safe_point() {
  if (locks_held_ == 0 && graph_.size() > parts_->renumber_above) renumber();
}

void Session::collect() {
  const Guard guard(mutex_);
  ensure(locks_held_ == 0, "collect() inside a Session::Lock");
  renumber();
}

void Session::remark_leaves() {
  parts_->tape.clear();
  parts_->each_state([&](const TensorState& state) {
    if (state.requires_grad) parts_->tape.mark_leaf(state.node);
  });
}

// A copy of the node in `graph`; one that needs no inputs becomes a Buffer, and so leads nowhere.
Id Session::copy_node(Graph& graph, Id id, const std::vector<Id>& new_id) {
  const Node& node = graph_[id];
  if (node.op != Op::Buffer && needs_no_inputs(parts_->values, parts_->tape, *this, id))
    return add_buffer(graph, shape(id), node.dtype, parts_->values.find(id)->device);
  std::vector<Id> sources;
  for (Id source : graph_.sources(node)) sources.push_back(new_id[source]);
  const bool has_list = op_info(node.op).arg == ArgKind::List;
  return graph.add(node.op, node.dtype, sources,
                   has_list ? graph.list(graph_.arg_list(id)) : node.arg);
}

void Session::renumber() {
  remark_leaves();  // leaves that died since hold no tape any more
  const uint32_t old_size = graph_.size();
  Graph graph;
  ValueTable values;
  std::vector<Id> new_id(old_size, kNoId);
  for (Id id : mark_without_dead_calls()) {
    new_id[id] = copy_node(graph, id, new_id);
    if (parts_->values.find(id)) values.set(new_id[id], parts_->values.share(id));
  }
  parts_->computed.renumber(new_id);
  for (auto& [state, nodes] : parts_->versions) {
    for (Id& node : nodes) node = new_id[node];
    std::erase(nodes, kNoId);
  }
  graph_ = std::move(graph);
  parts_->each_state([&](TensorState& state) {
    state.node = new_id[state.node];
    parts_->computed.hold(held_by(graph_, state.node));
  });
  parts_->values = std::move(values);
  shapes_ = std::make_unique<Shapes>(graph_);
  devices_ = std::make_unique<Devices>(graph_);
  extents_ = std::make_unique<Extents>(graph_, *shapes_);
  remark_leaves();
  parts_->renumber_above = std::max(Parts::kSmallGraph, 2 * graph_.size());
  parts_->maybe_garbage = false;
  ++parts_->statistics.collections;
  if (debugging(5))
    debug_write(fmt::format("memory: renumbered, {} of {} nodes live\n", graph_.size(), old_size));
}

}  // namespace plugrad::engine
