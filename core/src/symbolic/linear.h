// Linear forms of integer expressions, on which index arithmetic works.
#pragma once

#include <optional>
#include <vector>

#include "symbolic/bounds.h"

namespace plugrad {

struct Term {
  Id id;
  int64_t factor;
  friend bool operator==(const Term&, const Term&) = default;
};

/// constant + sum of factor * id, with ids ascending and distinct, and no factor 0.
struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;

  void add(Id id, int64_t factor);
  int64_t factor_of(Id id) const;
  friend bool operator==(const Linear&, const Linear&) = default;
};

/// The linear form of `id` through Add, Sub, Neg and Mul by a constant; none if it has more than
/// kMaxTerms terms or a number overflows. Holds modulo 2^bits; see is_exact.
inline constexpr size_t kMaxTerms = 24;
std::optional<Linear> linear_of(const Graph& g, Id id);

/// All values of the sum, saturating.
Interval interval_of(const Linear& sum, Bounds& bounds);

/// Whether the sum in unbounded integers equals the node's value: always for Index; for other
/// dtypes if the sum does not leave them.
bool is_exact(const Graph& g, Id id, const Linear& sum, Bounds& bounds);

/// Builds the sum: terms in ascending id, the constant last.
Id build(Graph& g, const Linear& sum, DType dtype);

/// The sum divided by a common divisor.
Linear divided(const Linear& sum, int64_t divisor);

}  // namespace plugrad
