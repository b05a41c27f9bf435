// Reductions whose accumulators begin with what earlier parts of the same sum have left in memory:
//   op(Reduce op …, Load)    where nothing else uses the Reduce
#pragma once

#include <vector>

#include "codegen/lanes.h"

namespace plugrad::codegen {

class RunningTotals {
 public:
  RunningTotals(const Graph& g, Id sink, Lanes& lanes);
  /// What the accumulator of a Reduce may begin with; kNoId for nothing.
  Id begin(Id reduce) const { return begin_[reduce]; }
  /// The Reduce that is the node's value once it has begun so; kNoId for none.
  Id sum(Id node) const { return sum_[node]; }

 private:
  std::vector<Id> begin_, sum_;  // by node
};

}  // namespace plugrad::codegen
