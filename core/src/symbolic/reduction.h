// Functions shared by the rules on reductions.
#pragma once

#include "base/internal.h"
#include "symbolic/rules/tables.h"

namespace plugrad {

inline Op reduce_op(const Graph& g, Id reduce) {
  return static_cast<Op>(g.arg_list(reduce)[0]);
}

/// The identity of a reduction: 0, 1, -infinity or the lowest integer.
PLUGRAD_INTERNAL Id identity_of(Graph& g, Op op, DType dtype);

/// The sum of `value` over `range` in closed form; none if there is none.
std::optional<Id> sum_over(Graph& g, Id value, Id range, Algebra& algebra);

/// `id` with `range` replaced by `at`. Loads that depend on the range are gated by `valid`.
Id at_index(Graph& g, Id id, Id range, Id at, Id valid, Algebra& algebra);

/// A condition as bounds of one range, from comparisons that are linear in it.
struct RangeCondition {
  std::vector<Id> other;           // clauses of another form; they may contain the range
  std::vector<Id> lowers, uppers;  // lower <= range < upper
  std::optional<Id> equal;         // range == equal
};
/// Splits a conjunction; false if `negated` and it is no single comparison.
bool condition_on(Graph& g, Id condition, bool negated, Id range, Algebra& algebra,
                  RangeCondition& result);

}  // namespace plugrad
