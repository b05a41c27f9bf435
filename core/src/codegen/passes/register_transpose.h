// Vectors that are stored lane by lane, far apart, beside others whose lanes are the neighbours of
// theirs: transposed in registers, they are stored in whole vectors.
//   before   store %c[%i + 7*lane] of %a; store %c[%i + 1 + 7*lane] of %b      lane = 0, 1
//   after    store.x2 %c[%i] (%a.0, %b.0); store.x2 %c[%i + 7] (%a.1, %b.1)
#pragma once

#include <vector>

#include "codegen/analysis/access.h"
#include "symbolic/symbolic.h"

namespace plugrad::codegen {

/// A store of a vector, lane i of which goes to element index + i * stride.
struct LaneStore {
  Id memory, index, value;
  int64_t stride;
  uint32_t lanes;
  RangeSet loops;  // that it stands in
};

/// Stores of whole vectors that do the work of those of `stores` that are neighbours; a store that
/// has none is left: `is_left` tells which, in the order of `stores`.
std::vector<Id> transpose_stores(Graph& g, Simplifier& simplify, std::span<const LaneStore> stores,
                                 std::vector<bool>& is_left);

}  // namespace plugrad::codegen
