// Builds nodes of a tensor graph in simplest form: adjacent views merge, uniform values become
// scalars, and empty tensors vanish.
#pragma once

#include <span>
#include <vector>

#include "ir/facts.h"
#include "symbolic/symbolic.h"

namespace plugrad::schedule {

class TensorBuilder {
 public:
  using Dims = std::vector<int64_t>;
  TensorBuilder(Graph& graph, Shapes& shapes, RuleSet rules);
  TensorBuilder(const TensorBuilder&) = delete;
  TensorBuilder& operator=(const TensorBuilder&) = delete;

  // Views, by the table view_rules().
  Id reshape(Id x, const Dims& shape) { return move(Op::Reshape, x, shape); }
  Id permute(Id x, const Dims& order) { return move(Op::Permute, x, order); }
  Id expand(Id x, const Dims& shape) { return move(Op::Expand, x, shape); }
  Id pad(Id x, const Dims& pads) { return move(Op::Pad, x, pads); }
  Id shrink(Id x, const Dims& bounds) { return move(Op::Shrink, x, bounds); }
  Id flip(Id x, const Dims& flags) { return move(Op::Flip, x, flags); }
  Id reduce(Op op, Id x, const Dims& axes);
  /// An elementwise op. Sources of shape () stand for the same value everywhere.
  Id elementwise(const Node& like, std::span<const Id> sources);

  /// `scalar`, of shape (), in every element of `shape`.
  Id filled(Id scalar, const Dims& shape);
  Id zeros(DType dtype, const Dims& shape) {
    return filled(graph_.constant(dtype, int64_t{0}), shape);
  }
  Dims shape(Id x) {
    const auto s = shapes_[x];
    return {s.begin(), s.end()};
  }
  const Graph& graph() const { return graph_; }
  /// Node visits of the algebra rules.
  uint64_t visits() const { return simplify_.rewriter().visits(); }
  int64_t count(Id x) { return element_count(shapes_[x]); }
  /// The node of one element that `x` repeats, or kNoId.
  Id one_value(Id x);

 private:
  Id as_scalar(Id x);
  Id hoisted(const Node& like, std::span<const Id> sources);
  Id simplified(Id node);
  Id move(Op op, Id x, const Dims& values) {
    return views_.at(graph_.add(op, graph_[x].dtype, {x}, graph_.list(values)));
  }
  Graph& graph_;
  Shapes& shapes_;
  Simplifier simplify_;
  Rewriter views_;
  std::vector<Id> one_value_;  // by id; kNoId where elements differ
};

/// Views of views, views without effect, and reductions of empty tensors.
std::span<const Rule> view_rules();
const RuleTable& view_table();

}  // namespace plugrad::schedule
