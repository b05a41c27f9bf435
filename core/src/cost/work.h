// The work of a graph's operations, in additions.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad::cost {

/// Cost of one element relative to an add.
uint32_t op_weight(const Graph& g, const Node& n);

/// The weight of each elementwise operation as counts of work have it. Casts are free, as are
/// addresses: operations on indices, conditions on positions alone, and choices by them. A Reduce
/// counts for each term, which is its reader's to do.
class CountedWeights {
 public:
  explicit CountedWeights(const Graph& graph) : graph_(graph) {}
  uint32_t operator[](Id id);

 private:
  /// Whether the integer or condition follows from loop counters and constants.
  bool is_position(Id id);
  const Graph& graph_;
  std::vector<uint8_t> positions_;  // by id
};

}  // namespace plugrad::cost
