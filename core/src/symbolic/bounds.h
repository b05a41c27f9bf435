// Interval analysis: the values that each integer node can have.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad {

/// lo <= value <= hi. For U64, hi == INT64_MAX means no upper bound.
struct Interval {
  int64_t lo, hi;
  bool is_const() const { return lo == hi; }
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// All values of an integer dtype; for other dtypes, all of int64_t.
Interval dtype_interval(DType dtype);

/// Intervals of the nodes of a graph, computed lazily in the order of ids. Index arithmetic
/// saturates; the interval of any other integer that may overflow is its whole dtype, because it
/// wraps.
class Bounds {
 public:
  explicit Bounds(const Graph& graph) : graph_(graph) {}
  Interval operator[](Id id) {
    if (id >= by_id_.size()) fill(id);
    return by_id_[id];
  }
  /// Sets the interval of a node that has none otherwise (a parameter, a hardware id). Call it
  /// before asking for the bounds of any later node.
  void set(Id id, Interval interval);

 private:
  void fill(Id id);
  Interval compute(Id id) const;
  const Graph& graph_;
  std::vector<Interval> by_id_;
};

// Saturating interval arithmetic.
int64_t saturating_add(int64_t a, int64_t b);
int64_t saturating_mul(int64_t a, int64_t b);
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval floor_divide(Interval a, Interval b);
Interval floor_modulo(Interval a, Interval b);

}  // namespace plugrad
