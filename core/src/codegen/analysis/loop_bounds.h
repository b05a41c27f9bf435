// Conditions that say between which values of a loop a sum has terms at all.
#pragma once

#include <vector>

#include "codegen/analysis/access.h"
#include "symbolic/linear.h"

namespace plugrad::codegen {

/// factor * range + rest < 0, a clause of the condition outside of which the terms of a sum are 0.
struct LoopBound {
  Id clause, range;
  int64_t factor;
  Linear rest;
};

/// For a sum of where(condition, term, 0); a clause over two of its ranges is there for each.
std::vector<LoopBound> loop_bounds(const Graph& g, OpenRanges& open, Id reduce);

}  // namespace plugrad::codegen
