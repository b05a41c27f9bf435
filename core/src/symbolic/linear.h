// Integer expressions as sums of coefficient times term: what index arithmetic is done on.
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

/// constant + sum of factor * id. Terms are in ascending id, each id once, no factor 0.
struct Linear {
  std::vector<Term> terms;
  int64_t constant = 0;

  void add(Id id, int64_t factor);
  int64_t factor_of(Id id) const;
  friend bool operator==(const Linear&, const Linear&) = default;
};

/// The sum that `id` is, looking through Add, Sub, Neg and Mul by a constant; nothing when it has
/// more than kMaxTerms terms or a number overflows. Holds in wrap-around arithmetic; see is_exact.
inline constexpr size_t kMaxTerms = 24;
std::optional<Linear> linear_of(const Graph& g, Id id);

/// All values the sum can take (saturating).
Interval interval_of(const Linear& sum, Bounds& bounds);

/// Whether the sum in unbounded integers equals the node's value: Index does not overflow; other
/// dtypes are exact when the sum stays inside them.
bool is_exact(const Graph& g, Id id, const Linear& sum, Bounds& bounds);

/// The node of a sum: terms in ascending id, the constant last.
Id build(Graph& g, const Linear& sum, DType dtype);

/// The sum divided by a number that divides all of it.
Linear divided(const Linear& sum, int64_t divisor);

}  // namespace plugrad
