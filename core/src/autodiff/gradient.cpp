// Reverse-mode differentiation in one descending walk over ids: consumers have larger ids, so that
// a node's gradient is complete when the walk reaches it.
#include "autodiff/gradient.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "autodiff/parts.h"
#include "autodiff/rules.h"
#include "base/check.h"
#include "base/settings.h"
#include "base/text.h"
#include "ir/user.h"
#include "rewrite/disabled.h"

namespace plugrad::autodiff {
namespace {

/// Limits the gradient to the node's extents: elements beyond have no influence on the loss.
Id counted(Context& context, Id node, Id gradient) {
  if (context.extents == nullptr || !context.extents->is_counted(node)) return gradient;
  Vjp vjp(context, node, gradient);
  BoundedGraph bounded{context.graph, context.shapes, *context.extents};
  return bounded.like(vjp.full_g(), node);
}

/// The nodes between the loss and the targets, ascending, and the gradient accumulated for each.
class Tape {
 public:
  /// `targets` are sorted.
  Tape(Context& context, Id loss, std::span<const Id> targets) : context_(context) {
    Reachable reachable;
    const Graph& g = context.graph;
    nodes_ = reachable.from(g, std::span(&loss, 1), [&](Id id) { return g[id].op == Op::Detach; });
    active_.assign(nodes_.size(), false);
    is_used_up_.assign(nodes_.size(), false);
    gradient_.assign(nodes_.size(), kNoId);
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const Node& n = g[nodes_[i]];
      active_[i] = context.is_tracked ? context.is_tracked(nodes_[i])
                                      : std::ranges::binary_search(targets, nodes_[i]);
      if (n.op == Op::Detach) is_used_up_[i] = n.arg == kDifferentiated;
      if (n.op == Op::Detach || !is_float(n.dtype)) continue;
      for (Id s : g.sources(n)) {
        const size_t source = find(s);
        if (!context.is_tracked && active_[source]) active_[i] = true;
        if (is_used_up_[source]) is_used_up_[i] = true;
      }
    }
  }

  bool is_used_up() const { return is_used_up_.back(); }
  size_t size() const { return nodes_.size(); }
  Id node(size_t index) const { return nodes_[index]; }
  /// The accumulated gradient of the node.
  Id gradient(size_t index) {
    if (const auto parts = parts_.find(index); parts != parts_.end()) {
      const Id sum = sum_of_parts(context_, parts->second);
      parts_.erase(parts);
      add(index, sum);
    }
    return gradient_[index];
  }
  bool is_active(Id id) const {
    const size_t index = find(id);
    return index < nodes_.size() && active_[index];
  }

  /// Adds gradient `of` for a use of `id` in a node of shape `used_as`.
  void flow(Id id, Id of, ListId used_as) {
    if (of == kNoId || !is_active(id)) return;
    of = fold(id, of, used_as);
    const bool is_counted = context_.extents != nullptr && context_.extents->is_counted(id);
    if (!is_counted && padded_axis(context_.graph, of))
      parts_[find(id)].push_back(of);
    else
      add(find(id), of);
  }

  /// The gradient of `id` in its full shape.
  Id result(Id id) {
    if (!is_active(id) || gradient(find(id)) == kNoId) return kNoId;
    const Id whole = counted(context_, id, gradient(find(id)));
    Vjp vjp(context_, id, whole);
    return vjp.full_g();
  }

 private:
  void add(size_t index, Id more) {
    Id& sum = gradient_[index];
    sum = sum == kNoId ? more : context_.graph.binary(Op::Add, sum, more);
  }

  size_t find(Id id) const {
    const auto at = std::ranges::lower_bound(nodes_, id);
    return at != nodes_.end() && *at == id ? static_cast<size_t>(at - nodes_.begin())
                                           : nodes_.size();
  }

  /// A source of shape () was used for every element: sums its gradients.
  Id fold(Id id, Id of, ListId used_as) {
    Graph& g = context_.graph;
    const ListId scalar = g.list({});
    if (context_.shapes.id(id) != scalar || used_as == scalar) return of;
    const ListId shape = context_.shapes.id(of);
    if (shape == scalar) {
      const int64_t count = element_count(g.list(used_as));
      return g.binary(Op::Mul, of, g.constant(g[of].dtype, count));
    }
    Vjp vjp(context_, id, of);
    std::vector<int64_t> axes(g.list(shape).size());
    std::iota(axes.begin(), axes.end(), 0);
    return vjp.move(Op::Reshape, vjp.sum(of, axes), {});
  }

  Context& context_;
  std::vector<Id> nodes_;
  std::vector<bool> active_;
  std::vector<bool> is_used_up_;  // depends on a result of which backward() was called
  std::vector<Id> gradient_;
  std::map<size_t, std::vector<Id>> parts_;  // by index: Pads that are not in gradient_ yet
};

/// Whether a user's function computes the gradient.
bool is_call(const Node& n) {
  return n.op == Op::Function && function_call(n.arg) != kSlopeCall && !is_range_check(n);
}

/// Calls of functions with their own derivative. All outputs of a call have larger ids than its
/// inputs: their gradients are complete when the walk reaches the smallest one.
class Calls {
 public:
  explicit Calls(const Graph& g, const Tape& tape) {
    for (size_t index = 0; index < tape.size(); ++index) {
      const Node& n = g[tape.node(index)];
      if (is_call(n)) nodes_[function_call(n.arg)].push_back(index);
    }
  }

  /// Lets the function of the node compute its gradients, once for all outputs.
  void flow(Context& context, Tape& tape, size_t index) {
    const Graph& g = context.graph;
    const Id first = tape.node(index);
    const auto& outputs = nodes_.at(function_call(g[first].arg));
    if (outputs.front() != index) return;
    std::vector<FunctionVjp::Flow> flows;
    for (size_t output : outputs)
      if (tape.gradient(output) != kNoId)
        flows.push_back({tape.node(output), tape.result(tape.node(output))});
    if (flows.empty()) return;
    FunctionVjp vjp{flows, {}};
    const std::vector<Id> sources(g.sources(first).begin(), g.sources(first).end());
    for (Id source : sources) vjp.wanted.push_back(tape.is_active(source));
    const std::vector<Id> to = context.function(vjp);
    for (size_t i = 0; i < to.size(); ++i)
      tape.flow(sources[i + 1], to[i], context.shapes.id(sources[i + 1]));
  }

 private:
  std::map<uint64_t, std::vector<size_t>> nodes_;  // by call: indices of its outputs, ascending
};

void require_known_derivatives(const std::string& disabled) {
  if (disabled.empty()) return;
  const std::vector<std::string> known = derivative_names();
  for (const std::string_view name : names_of(disabled)) {
    if (!name.starts_with(kDerivativePrefix) || std::ranges::count(known, name) != 0) continue;
    const std::string nearest = nearest_name(name, known);
    fail(ErrorKind::User, "[disable] \"{}\" in PLUGRAD_DISABLE is no derivative{}; these are: {}",
         name, nearest.empty() ? "" : "; did you mean " + nearest + "?", fmt::join(known, ", "));
  }
}

}  // namespace

std::vector<Id> gradient(Context& context, Id loss, Id seed, std::span<const Id> targets) {
  require_known_derivatives(settings().disable);
  std::vector<Id> sorted(targets.begin(), targets.end());
  std::ranges::sort(sorted);
  Tape tape(context, loss, sorted);
  require(
      !tape.is_used_up(),
      "[{}] an earlier backward() released the graph of this loss, or of a loss that is a part of "
      "it; call backward(true) there, or use its detach() here",
      context.caller);
  tape.flow(loss, seed, context.shapes.id(loss));
  Calls calls(context.graph, tape);
  const Walk walk{[&](Id id) { return tape.is_active(id); },
                  [&](Id id) { return std::ranges::binary_search(sorted, id); }};
  for (size_t i = tape.size(); i-- > 0;) {
    const Id node = tape.node(i);
    const Id first = context.graph.size();
    if (is_call(context.graph[node])) {
      calls.flow(context, tape, i);
      continue;
    }
    if (tape.gradient(i) == kNoId) continue;
    Vjp vjp(context, node, counted(context, node, tape.gradient(i)), &walk);
    differentiate(vjp);
    for (const Vjp::Flow& flow : vjp.flows())
      tape.flow(flow.to, flow.gradient, context.shapes.id(flow.used_in));
    if (context.differentiated) context.differentiated(node, first);
  }
  std::vector<Id> results;
  for (Id target : targets) results.push_back(tape.result(target));
  return results;
}

}  // namespace plugrad::autodiff
