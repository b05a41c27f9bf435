#include "schedule/long_sums.h"

namespace plugrad::schedule {

LongSums::LongSums(const Graph& graph, std::span<const Id> roots)
    : graph_(graph), uses_(graph.size(), 0) {
  for (Id root : roots) ++uses_[root];
  Reachable reachable;
  for (Id id : reachable.from(graph, roots))
    for (Id source : graph.sources(id)) ++uses_[source];
}

}  // namespace plugrad::schedule
