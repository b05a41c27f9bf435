// The interval of values that each integer node can have.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad {

/// lo <= value <= hi. For U64 the highest int64_t as hi means "or anything above".
struct Interval {
  int64_t lo, hi;
  bool is_const() const { return lo == hi; }
  bool contains(int64_t value) const { return lo <= value && value <= hi; }
  friend bool operator==(const Interval&, const Interval&) = default;
};

/// Every value of an integer dtype; for other dtypes, of int64_t.
Interval dtype_interval(DType dtype);

/// Intervals of the nodes of a graph, filled on demand by one forward loop over ids. Index
/// arithmetic saturates; other integers that may leave their dtype get all of it, because they
/// wrap.
class Bounds {
 public:
  explicit Bounds(const Graph& graph) : graph_(graph) {}
  Interval operator[](Id id) {
    if (id >= by_id_.size()) fill(id);
    return by_id_[id];
  }
  /// Says what is known of a node otherwise unbounded (a parameter, a hardware id). To be called
  /// before the bounds of any later node are asked for.
  void set(Id id, Interval interval);

 private:
  void fill(Id id);
  Interval compute(Id id) const;
  const Graph& graph_;
  std::vector<Interval> by_id_;
};

// Saturating interval arithmetic: what Bounds does for each op.
int64_t saturating_add(int64_t a, int64_t b);
int64_t saturating_mul(int64_t a, int64_t b);
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval floor_divide(Interval a, Interval b);
Interval floor_modulo(Interval a, Interval b);

}  // namespace plugrad
