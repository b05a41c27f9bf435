// What the rules on reductions share.
#pragma once

#include "symbolic/rules/tables.h"

namespace plugrad {

inline Op reduce_op(const Graph& g, Id reduce) {
  return static_cast<Op>(g.arg_list(reduce)[0]);
}

/// What a reduction over nothing is: 0, 1, -infinity or the lowest integer.
Id identity_of(Graph& g, Op op, DType dtype);

/// The sum of `value` over all values of `range`, without a loop, or nothing.
std::optional<Id> sum_over(Graph& g, Id value, Id range, Algebra& algebra);

/// `id` at range == `at`. Loads that move with the range read only where `valid` holds.
Id at_index(Graph& g, Id id, Id range, Id at, Id valid, Algebra& algebra);

/// A condition on one range, from comparisons that are linear in it.
struct RangeCondition {
  std::vector<Id> other;  // clauses that do not have the form below; may contain the range or not
  std::vector<Id> lowers, uppers;  // lower <= range < upper
  std::optional<Id> equal;         // range == equal
};
/// Takes a conjunction apart; false when `negated` and it is no single comparison.
bool condition_on(Graph& g, Id condition, bool negated, Id range, Algebra& algebra,
                  RangeCondition& result);

}  // namespace plugrad
