// The rule tables, one subject for each file, and the context of their functions.
#pragma once

#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad {

/// Context of every rule function of this room.
struct Algebra {
  Bounds bounds;
  RangeSets ranges;
  bool fast;
  Algebra(const Graph& graph, RuleSet sets)
      : bounds(graph), ranges(graph), fast(sets == RuleSet::Fast) {}
};

std::span<const Rule>
constant_rules();  ///< ops on constants, and nodes whose bounds leave one value
std::span<const Rule> identity_rules();       ///< x * 1, x + 0, x & x, …
std::span<const Rule> associativity_rules();  ///< constants outward; equal terms merge
std::span<const Rule> float_rules();          ///< exact float identities
std::span<const Rule> where_rules();
std::span<const Rule> cast_rules();
std::span<const Rule> compare_rules();
std::span<const Rule> boolean_rules();
std::span<const Rule> index_rules();  ///< linear sums, floor division and modulus

std::span<const Rule>
validity_rules();  ///< conditions of accesses: implied clauses, constant gates

std::span<const Rule> reduce_rules();    ///< empty reductions; part of the strict set
std::span<const Rule> fast_rules();      ///< the opt-in set
std::span<const Rule> collapse_rules();  ///< for collapse_reduces

/// Matches what `p` matches of dtype bool.
constexpr Pattern bools(Pattern p) {
  return rules::of_class(p, kBoolClass);
}

/// Whether a cast of `id` to dtype `to` keeps every value of its interval.
bool keeps_values(const Graph& g, Id id, DType to, Bounds& bounds);

/// The rules of a set, followed by `more`.
RuleTable table_of(RuleSet sets, std::initializer_list<std::span<const Rule>> more = {});
/// The table of a Simplifier.
const RuleTable& simplifier_table(RuleSet sets);

}  // namespace plugrad
