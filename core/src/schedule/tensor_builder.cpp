#include "schedule/tensor_builder.h"

#include "base/check.h"

namespace plugrad::schedule {

TensorBuilder::TensorBuilder(Graph& graph, Shapes& shapes, RuleSet rules)
    : graph_(graph),
      shapes_(shapes),
      simplify_(graph, rules),
      views_(graph, view_table(), {.fixpoint = true, .context = this}) {}

Id TensorBuilder::one_value(Id x) {
  while (one_value_.size() <= x) {
    const Id id = static_cast<Id>(one_value_.size());
    const Node& n = graph_[id];
    Id value = element_count(shapes_[id]) == 1 ? id : kNoId;
    // An Expand of a single element repeats it; other views only select repeats.
    if (is_movement(n.op) && n.op != Op::Pad) {
      const Id below = one_value_[n.src[0]];
      if (below != kNoId) value = below;
    }
    one_value_.push_back(value);
  }
  return one_value_[x];
}

Id TensorBuilder::as_scalar(Id x) {
  const Id value = one_value(x);
  return value == kNoId ? kNoId : reshape(value, {});
}

Id TensorBuilder::filled(Id scalar, const Dims& shape) {
  return expand(reshape(scalar, Dims(shape.size(), 1)), shape);
}

Id TensorBuilder::reduce(Op op, Id x, const Dims& axes) {
  Dims list = {static_cast<int64_t>(op)};
  list.insert(list.end(), axes.begin(), axes.end());
  return move(Op::Reduce, x, list);
}

/// op(expand(a), expand(b)) is expand(op(a, b)) where both repeat the same shape.
Id TensorBuilder::hoisted(const Node& like, std::span<const Id> sources) {
  ListId to = 0, from = 0;
  bool any = false;
  std::vector<Id> below(sources.begin(), sources.end());
  for (Id& s : below) {
    if (shapes_[s].empty()) continue;
    if (graph_[s].op != Op::Expand) return kNoId;
    const ListId inner = shapes_.id(graph_[s].src[0]), outer = shapes_.id(s);
    if (any && (inner != from || outer != to)) return kNoId;
    any = true;
    from = inner;
    to = outer;
    s = graph_[s].src[0];
  }
  if (!any) return kNoId;
  const auto target = graph_.list(to);
  return expand(elementwise(like, below), Dims(target.begin(), target.end()));
}

Id TensorBuilder::elementwise(const Node& like, std::span<const Id> sources) {
  std::vector<Id> src(sources.begin(), sources.end());
  Dims whole;
  bool varies = false;
  for (Id s : src) {
    const auto dims = shapes_[s];
    if (!dims.empty()) whole.assign(dims.begin(), dims.end());
    varies = varies || one_value(s) == kNoId;
  }
  const bool single = element_count(whole) == 1;
  bool constant = true;
  for (Id s : src) {
    const Id value = one_value(s);
    constant = constant && value != kNoId && graph_[value].op == Op::Const;
  }
  // Beside values that vary or repeat, single elements are scalars.
  if (!single || constant)
    for (Id& s : src)
      if (const Id scalar = as_scalar(s); scalar != kNoId) s = scalar;
  if (!varies && (!single || constant) && !whole.empty())
    return filled(elementwise(like, src), whole);
  if (const Id done = hoisted(like, src); done != kNoId) return done;
  return simplified(graph_.add(like.op, like.dtype, src, like.arg));
}

/// Algebra rules ignore shapes: a constant or scalar result is expanded.
Id TensorBuilder::simplified(Id node) {
  const Id value = simplify_(node);
  if (shapes_.id(value) == shapes_.id(node)) return value;
  return filled(value, shape(node));
}

}  // namespace plugrad::schedule
