#include "engine/views/linked_views.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "engine/session_state.h"
#include "engine/views/overlap.h"

namespace plugrad::engine {
namespace {

using Guard = std::lock_guard<InterpreterAwareMutex>;
using detail::ViewLinks;

// A node whose elements are those of its source, or zeros around them.
bool is_step(const Graph& graph, Id id) {
  const Op op = graph[id].op;
  if (op == Op::Bitcast)
    return size_of(graph[id].dtype) == size_of(graph[graph.sources(id)[0]].dtype);
  return is_movement(op) || op == Op::Detach;
}

void add_view(TensorState& base, TensorState& view) {
  view.links.base = &base;
  view.links.next = std::exchange(base.links.first, &view);
  if (view.links.next) view.links.next->links.previous = &view;
}

void remove_view(TensorState& view) {
  ViewLinks& links = view.links;
  (links.previous ? links.previous->links.next : links.base->links.first) = links.next;
  if (links.next) links.next->links.previous = links.previous;
  links.base = links.previous = links.next = nullptr;
}

ViewLinks::Path joined(std::vector<ViewStep> first, const std::vector<ViewStep>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return std::make_shared<const std::vector<ViewStep>>(std::move(first));
}

// The base of `base`, or with a level one that is that much farther, dies.
void forget_ancestor(TensorState& base, size_t level) {
  for (TensorState* view = base.links.first; view; view = view->links.next) {
    auto& paths = view->links.outer_paths;
    paths.erase(paths.begin() + static_cast<ptrdiff_t>(level));
    forget_ancestor(*view, level + 1);
  }
}

}  // namespace

const TensorState& outermost(const TensorState& state) {
  const TensorState* base = &state;
  while (base->links.base) base = base->links.base;
  return *base;
}

bool is_part_of_leaf(const TensorState& view) {
  const TensorState* each = &view;
  while (each->links.base && !each->links.is_detached) {
    each = each->links.base;
    if (each->requires_grad) return true;
  }
  return false;
}

void Session::link_view(TensorState& view, TensorState& of) {
  const Guard guard(mutex_);
  view.links.writes = of.links.writes;
  Id id = view.node;
  for (; id > of.node && is_step(graph_, id); id = graph_.sources(id)[0])
    view.links.is_detached |= graph_[id].op == Op::Detach;
  if (id != of.node) {
    view.links.writes = ViewLinks::Writes::Computed;
    return;
  }
  // Views of a detached view have its gradients.
  const bool is_view_of_view = of.links.base && !of.links.stands_alone && !of.links.is_detached;
  view.links.from = of.node;
  if (is_view_of_view && of.node == of.links.node) {
    view.links.path = of.links.path;
    view.links.from = of.links.from;
  } else if (is_view_of_view) {
    view.links.path = std::make_shared<const std::vector<ViewStep>>(path_of(of));
  }
  view.links.node = view.node;
  TensorState& base = is_view_of_view ? *of.links.base : of;
  if (base.links.base) {
    const std::vector<ViewStep> path = path_of(view);
    view.links.outer_paths.push_back(joined(path_of(base), path));
    for (const ViewLinks::Path& outer : base.links.outer_paths)
      view.links.outer_paths.push_back(joined(*outer, path));
  }
  if (is_view_of_view) view.links.held_base = of.links.held_base;
  add_view(base, view);
}

std::vector<ViewStep> Session::path_of(const TensorState& view) {
  const Guard guard(mutex_);
  std::vector<ViewStep> path;
  for (Id id = view.links.node; id != view.links.from; id = graph_.sources(id)[0]) {
    const Id source = graph_.sources(id)[0];
    ViewStep step{graph_[id].op, graph_[source].dtype, graph_[id].dtype, {}, {}};
    step.shape.assign(shape(source).begin(), shape(source).end());
    if (op_info(step.op).arg == ArgKind::List)
      step.arg.assign(graph_.arg_list(id).begin(), graph_.arg_list(id).end());
    path.push_back(std::move(step));
  }
  if (view.links.path) path.insert(path.end(), view.links.path->rbegin(), view.links.path->rend());
  std::ranges::reverse(path);
  return path;
}

// The elements of `node`, which the base denotes, that the view shows.
Id Session::moved(Id node, const TensorState& view) {
  for (const ViewStep& step : path_of(view)) {
    const DType dtype = step.op == Op::Bitcast ? step.to : graph_[node].dtype;
    const bool has_list = op_info(step.op).arg == ArgKind::List;
    node = graph_.add(step.op, dtype, {node}, has_list ? graph_.list(step.arg) : 0);
  }
  return node;
}

void Session::add_shown(TensorState& view, Id base, std::vector<ShownNode>& shown) {
  if (view.links.stands_alone) return shown.push_back({&view});
  note_assignment(view);
  const Id node = moved(base, view);
  shown.push_back({&view, base, node, view.requires_grad ? leaf_node(node) : node});
  add_shown_by_views(view, shown.back().node, shown);
}

void Session::add_shown_by_views(TensorState& base, Id node, std::vector<ShownNode>& shown) {
  for (TensorState* view = base.links.first; view; view = view->links.next)
    add_shown(*view, node, shown);
}

// After all nodes are made: room is made for those that there are.
void Session::prepare_to_show(std::span<const ShownNode> shown) {
  for (const ShownNode& each : shown)
    if (each.node != kNoId) prepare_to_denote(*each.view, each.view->requires_grad);
}

std::vector<ShownNode> Session::nodes_of_views(TensorState& base, Id node) {
  const Guard guard(mutex_);
  std::vector<ShownNode> shown;
  add_shown_by_views(base, node, shown);
  prepare_to_show(shown);
  return shown;
}

std::vector<ShownNode> Session::nodes_with_gradient(TensorState& view, Id node) {
  const Guard guard(mutex_);
  std::vector<ShownNode> shown;
  if (!view.links.is_detached || view.requires_grad || !is_tracked(node)) return shown;
  shown.push_back({&view, kNoId, kNoId, node});
  add_shown_by_views(view, node, shown);
  prepare_to_show(shown);
  return shown;
}

void Session::show(std::span<const ShownNode> shown) noexcept {
  const Guard guard(mutex_);
  for (const ShownNode& each : shown) {
    TensorState& view = *each.view;
    view.links.is_behind = each.node == kNoId;
    if (view.links.is_behind) continue;
    state_->forget_assignments(&view);  // a movement of the base, which is pending
    if (each.moved != kNoId) {
      view.links.path.reset();
      view.links.from = each.base;
      view.links.node = each.moved;
    }
    set_node(view, each.node);
  }
}

void Session::catch_up(TensorState& view) {
  const Guard guard(mutex_);
  if (!view.links.is_behind) return;
  const TensorState* const base = view.links.base;
  std::vector<ShownNode> shown;
  if (base && !base->links.is_lost)
    add_shown(view, base->node, shown);
  else
    add_shown_by_views(view, view.node, shown);
  prepare_to_show(shown);
  view.links.is_behind = false;
  show(shown);
}

void Session::leave_base(TensorState& state) noexcept {
  TensorState* const base = state.links.base;
  if (!base) return;
  remove_view(state);
  const StatePtr held = std::exchange(state.links.held_base, nullptr);
  state.links.path.reset();
  state.links.from = state.links.node = kNoId;
  state.links.is_detached = state.links.is_behind = false;
  if (!held && !base->links.is_lost) return;
  TensorState* const first =
      base->links.first;  // without a tensor, the base connects several views
  if (first && !first->links.next) return leave_base(*first);
  if (!first && base->links.is_lost) delete base;
}

// The base dies, or is no longer one, which must not need memory. Its views become views of its own
// base; without one, a single view becomes a value, and several stay: then returns true.
bool Session::release_views(TensorState& base) noexcept {
  TensorState* const first = base.links.first;
  if (!first) return false;
  if (TensorState* const outer = base.links.base) {
    while (TensorState* const view = base.links.first) {
      remove_view(*view);
      view->links.path = std::move(view->links.outer_paths.front());
      view->links.outer_paths.erase(view->links.outer_paths.begin());
      view->links.from = view->links.node = kNoId;
      view->links.is_detached |= base.links.is_detached;
      view->links.held_base = base.links.held_base;
      forget_ancestor(*view, 0);
      add_view(*outer, *view);
    }
    return false;
  }
  if (first->links.next) return true;
  leave_base(*first);
  return false;
}

void Session::make_value(TensorState& state) {
  const Guard guard(mutex_);
  auto lost = state.links.first ? std::make_unique<TensorState>() : nullptr;
  if (release_views(state)) {
    lost->node = state.node;
    lost->device = state.device;
    lost->number = ++state_->states_made;
    lost->links.is_lost = true;
    lost->links.first = std::exchange(state.links.first, nullptr);
    for (TensorState* view = lost->links.first; view; view = view->links.next)
      view->links.base = lost.get();
    lost.release();  // deleted by the view that leaves it last
  }
  leave_base(state);
  state.links.writes = ViewLinks::Writes::ToBase;
}

void Session::restore_base(TensorState& view, Id node) {
  const Guard guard(mutex_);
  TensorState* const lost = view.links.base;
  const StatePtr base = make(node, lost->device);
  const std::vector<ShownNode> shown = nodes_of_views(*lost, node);
  base->links.first = std::exchange(lost->links.first, nullptr);
  for (TensorState* each = base->links.first; each; each = each->links.next) {
    each->links.base = base.get();
    each->links.held_base = base;
  }
  delete lost;
  show(shown);
}

std::vector<ViewStep> Session::path_from_outermost(const TensorState& state) {
  const Guard guard(mutex_);
  std::vector<ViewStep> path;
  for (const TensorState* each = &state; each->links.base; each = each->links.base) {
    std::vector<ViewStep> whole = path_of(*each);
    whole.insert(whole.end(), path.begin(), path.end());
    path = std::move(whole);
  }
  return path;
}

bool Session::may_overlap(const TensorState& a, const TensorState& b) {
  const Guard guard(mutex_);
  if (&outermost(a) != &outermost(b)) return false;
  const auto has_none = [&](const TensorState& state) {
    return std::ranges::find(shape(state.node), 0) != shape(state.node).end();
  };
  return !has_none(a) && !has_none(b) &&
         engine::may_overlap(path_from_outermost(a), path_from_outermost(b));
}

// Views need no node of the graph from now on.
void Session::keep_paths() {
  state_->each_state([&](TensorState& state) {
    if (state.links.node == kNoId) return;
    if (state.links.node != state.links.from)
      state.links.path = std::make_shared<const std::vector<ViewStep>>(path_of(state));
    state.links.node = state.links.from = kNoId;
  });
}

}  // namespace plugrad::engine
