// The rule tables, one subject a file, and what their functions may ask.
#pragma once

#include "symbolic/linear.h"
#include "symbolic/symbolic.h"

namespace plugrad {

/// Context of every rule function of this room.
struct Algebra {
  Bounds bounds;
  explicit Algebra(const Graph& graph) : bounds(graph) {}
};

std::span<const Rule> constant_rules();       ///< ops on constants, and nodes whose bounds leave one value
std::span<const Rule> identity_rules();       ///< x * 1, x + 0, x & x, …
std::span<const Rule> associativity_rules();  ///< constants outward; equal terms together
std::span<const Rule> float_rules();          ///< exact float identities
std::span<const Rule> where_rules();
std::span<const Rule> cast_rules();
std::span<const Rule> compare_rules();
std::span<const Rule> boolean_rules();
std::span<const Rule> index_rules();          ///< linear sums, floor division and modulus

/// Whether a cast of `id` to dtype `to` keeps every value that it can have.
bool keeps_values(const Graph& g, Id id, DType to, Bounds& bounds);

const RuleTable& strict_table();
const RuleTable& fast_table();

}  // namespace plugrad
