// The derivative of each op: one row for each op, and rows for patterns of several nodes.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "autodiff/convolution.h"
#include "autodiff/gradient.h"
#include "autodiff/pooling.h"
#include "rewrite/rule_table.h"

namespace plugrad::autodiff {

/// The interface of the walk to the rows.
struct Walk {
  std::function<bool(Id)> is_active;  // whether a target depends on it, or it is a target
  std::function<bool(Id)> is_target;
};

/// The vector-Jacobian product of one node: its gradient, and the gradients that a row adds.
class Vjp {
 public:
  Vjp(Context& context, Id node, Id gradient, const Walk* walk = nullptr)
      : graph(context.graph), context_(context), walk_(walk), node_(node), gradient_(gradient) {}

  Graph& graph;
  Id y() const { return node_; }                            // the node's own value
  Id x(size_t i) const { return graph.sources(node_)[i]; }  // a source
  // the gradient of the node; may have shape ()
  Id g() const { return gradient_; }
  DType dtype() const { return graph[node_].dtype; }
  uint32_t device(Id id) { return context_.devices[id]; }
  std::vector<int64_t> shape(Id id);
  std::vector<int64_t> arg() const;  // the node's list

  /// A gradient of a node, for its use in the shape of `used_in`.
  struct Flow {
    Id to, gradient, used_in;
  };
  void flow(size_t source, Id gradient);
  void flow_to(Id node, Id gradient) { flows_[flow_count_++] = {node, gradient, node}; }
  std::span<const Flow> flows() const { return {flows_.data(), flow_count_}; }

  // Set by guards, for the right sides of their rows.
  std::optional<Convolution> convolution;
  std::optional<MaxPooling> pooling;
  Context& context() { return context_; }
  const Walk& walk() const { return *walk_; }
  bool is_counted() const {
    return context_.extents != nullptr && context_.extents->is_counted(node_);
  }

  // Nodes.
  Id number(double value) { return graph.constant(dtype(), value); }
  Id mul(Id a, Id b);  // x * 1 is x
  Id neg(Id a) { return graph.unary(Op::Neg, a); }
  Id move(Op op, Id a, const std::vector<int64_t>& list);
  Id reduce(Op op, Id a, const std::vector<int64_t>& axes);  // reduced axes become size 1
  Id sum(Id a, const std::vector<int64_t>& axes) { return reduce(Op::Add, a, axes); }
  /// `a`, padded with zeros along the axes.
  Id masked(Id a, const std::vector<int64_t>& axes, Op op = Op::Add);
  bool is_counted(Id a, int64_t axis);
  /// `a` with `fill` beyond its extent along the axis, and without that extent.
  Id whole(Id a, int64_t axis, double fill = 0);
  Id spread(Id a, const std::vector<int64_t>& shape);  // of shape (), or of size 1 where it repeats
  /// g in the full shape of y.
  Id full_g() { return spread(gradient_, shape(node_)); }

 private:
  Context& context_;
  const Walk* walk_;
  Id node_, gradient_;
  std::array<Flow, 3> flows_;
  size_t flow_count_ = 0;
};

/// The rows. Ops without one have no gradient (comparisons, rounding, Detach, leaves). A right side
/// is `flows`: one pattern for each source, over the sources and the names `g`, the node's
/// gradient, and `out`, its value.
const RuleTable& derivative_table();
/// The names of the rows, in their order.
std::vector<std::string> derivative_names();

/// Computes the gradients of other nodes by the first row that matches. Errors: User if
/// PLUGRAD_DISABLE has each row that matches.
void differentiate(Vjp& vjp);

}  // namespace plugrad::autodiff
