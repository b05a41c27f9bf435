// Stores that stand behind one test.
#pragma once

#include <vector>

#include "codegen/analysis/access.h"
#include "ir/graph.h"

namespace plugrad::codegen {

struct StoreGroup {
  Id gate;  // encloses the nest; kNoId for none
  std::vector<Id> stores;
};

/// Stores with the same gate, in the order in which the first of each group stands in the sink. A
/// store that reads what a later group writes comes after it.
std::vector<StoreGroup> store_groups(const Graph& g, OpenRanges& open, Id sink);

}  // namespace plugrad::codegen
