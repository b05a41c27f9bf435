// The derivative of each op: one row an op.
#pragma once

#include <array>

#include "autodiff/gradient.h"

namespace plugrad::autodiff {

/// What a rule sees of one node, and where it leaves what flows to the sources.
class Step {
 public:
  Step(Context& context, Id node, Id gradient)
      : graph(context.graph), context_(context), node_(node), gradient_(gradient) {}

  Graph& graph;
  Id y() const { return node_; }                            // the node's own value
  Id x(size_t i) const { return graph.sources(node_)[i]; }  // a source
  Id g() const { return gradient_; }                        // what flows in; may have shape ()
  DType dtype() const { return graph[node_].dtype; }
  uint32_t device(Id id) { return context_.devices[id]; }
  std::vector<int64_t> shape(Id id);
  std::vector<int64_t> arg() const;  // the node's list
  void flow(size_t source, Id gradient) { out_[source] = gradient; }
  Id out(size_t source) const { return out_[source]; }

  // Nodes.
  Id number(double value) { return graph.constant(dtype(), value); }
  Id mul(Id a, Id b);  // x * 1 is x
  Id neg(Id a) { return graph.unary(Op::Neg, a); }
  Id move(Op op, Id a, const std::vector<int64_t>& list);
  Id reduce(Op op, Id a, const std::vector<int64_t>& axes);  // axes become size 1
  Id sum(Id a, const std::vector<int64_t>& axes) { return reduce(Op::Add, a, axes); }
  /// `a`, with zeros around what counts along the axes.
  Id masked(Id a, const std::vector<int64_t>& axes, Op op = Op::Add);
  bool is_counted(Id a, int64_t axis);
  /// With 0 behind its extent along the axis, which has none then.
  Id whole(Id a, int64_t axis);
  Id spread(Id a, const std::vector<int64_t>& shape);  // shape (), or 1 where it is to repeat
  /// g in the full shape of y.
  Id full_g() { return spread(gradient_, shape(node_)); }

 private:
  Context& context_;
  Id node_, gradient_;
  std::array<Id, 3> out_{kNoId, kNoId, kNoId};
};

/// The gradient that each of the equal maxima of a Reduce by Max receives: they share it equally.
Id share_of_maxima(Step& step, const std::vector<int64_t>& axes);

using Rule = void (*)(Step&);

/// The rule of an op; null where no gradient flows (comparisons, rounding, Detach, leaves).
Rule rule_of(Op op);

}  // namespace plugrad::autodiff
