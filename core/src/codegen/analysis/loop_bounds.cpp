#include "codegen/analysis/loop_bounds.h"

#include <algorithm>

#include "codegen/analysis/gates.h"
#include "codegen/kernel.h"

namespace plugrad::codegen {
namespace {

// left - right of a comparison of indices.
std::optional<Linear> difference_of(const Graph& g, Id comparison) {
  const Node& n = g[comparison];
  if (n.op != Op::CmpLt || g[n.src[0]].dtype != DType::Index) return std::nullopt;
  auto left = linear_of(g, n.src[0]);
  const auto right = linear_of(g, n.src[1]);
  if (!left || !right) return std::nullopt;
  for (const Term& t : right->terms) left->add(t.id, -t.factor);
  left->constant -= right->constant;
  return left;
}

}  // namespace

std::vector<LoopBound> loop_bounds(const Graph& g, OpenRanges& open, Id reduce) {
  const ReduceParts parts = reduce_parts(g, reduce);
  std::vector<LoopBound> out;
  if (parts.op != Op::Add || parts.values.size() != 1) return out;
  const Node& value = g[parts.values[0]];
  if (value.op != Op::Where || !is_const(g, value.src[2]) || const_float(g, value.src[2]) != 0)
    return out;
  for (Id clause : conjuncts(g, value.src[0])) {
    const auto sum = difference_of(g, clause);
    if (!sum) continue;
    for (const Term& t : sum->terms) {
      if (std::ranges::find(parts.ranges, t.id) == parts.ranges.end()) continue;
      LoopBound bound{clause, t.id, t.factor, *sum};
      bound.rest.add(t.id, -t.factor);
      const bool once = std::ranges::none_of(
          bound.rest.terms, [&](const Term& other) { return open.depends(other.id, t.id); });
      if (once) out.push_back(std::move(bound));
    }
  }
  return out;
}

}  // namespace plugrad::codegen
