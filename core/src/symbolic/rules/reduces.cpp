// Removes constant ranges of reductions in loop form, and empty loops.
#include <cmath>
#include <span>
#include <vector>

#include "ir/range.h"
#include "symbolic/reduction.h"
#include "symbolic/rules/tables.h"

namespace plugrad {
namespace {
using namespace rules;

// A range of one iteration was simplified to 0 and leaves the Reduce. Expanded kernels have several
// values before the ranges, which may be constants, too: they have the dtype of the Reduce, ranges
// have dtype Index.
Id drop_constant_ranges(Graph& g, const Match& m) {
  const auto sources = g.sources(m.root);
  const DType dtype = g[m.root].dtype;
  const auto is_dropped = [&](Id id) { return is_const(g, id) && g[id].dtype == DType::Index; };
  std::vector<Id> kept{sources[0]};
  bool loops = false;
  for (Id source : sources.subspan(1)) {
    if (is_dropped(source)) continue;
    kept.push_back(source);
    loops = loops || g[source].op == Op::Range;
  }
  if (kept.size() == sources.size() || sources.size() == 1) return kNoMatch;
  if (loops) return g.with_sources(m.root, kept);
  Id sum = kept[0];
  for (Id value : std::span(kept).subspan(1))
    sum = g.add(reduce_op(g, m.root), dtype, {sum, value});
  return sum;
}

Id reduce_of_nothing(Graph& g, const Match& m) {
  for (Id range : g.sources(m.root).subspan(1))
    if (g[range].op == Op::Range && range_size(g, range) == 0)
      return identity_of(g, reduce_op(g, m.root), g[m.root].dtype);
  return kNoMatch;
}

// clang-format off
constexpr Rule kReduces[] = {
    rule("reduce-nothing",        any_of(x, Op::Reduce), code<reduce_of_nothing>),
    rule("reduce-constant-range", any_of(x, Op::Reduce), code<drop_constant_ranges>),
};
// clang-format on
}  // namespace

Id identity_of(Graph& g, Op op, DType dtype) {
  if (op == Op::Add) return g.constant(dtype, int64_t{0});
  if (op == Op::Mul) return g.constant(dtype, int64_t{1});
  if (is_float(dtype)) return g.constant(dtype, -INFINITY);
  return g.constant(dtype, is_unsigned(dtype) ? 0 : dtype_interval(dtype).lo);
}

std::span<const Rule> reduce_rules() {
  return kReduces;
}

}  // namespace plugrad
