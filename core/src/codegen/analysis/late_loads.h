// Loads of what earlier parts of a sum have left in memory:
//   op(Reduce op ..., Load)    where nothing else uses the Reduce
// Loaded after the Reduce's loops they take no registers there, and nothing in the loops waits for
// memory.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad::codegen {

class LateLoads {
 public:
  LateLoads(const Graph& g, Id sink);
  /// The Reduce that comes before the load; kNoId for loads that may come at any time.
  Id sum(Id load) const { return sum_[load]; }

 private:
  std::vector<Id> sum_;  // by node
};

}  // namespace plugrad::codegen
