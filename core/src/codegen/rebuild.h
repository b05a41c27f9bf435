// Rebuilding a graph of which some nodes change.
#pragma once

#include "ir/facts.h"

namespace plugrad::codegen {

/// `root` rebuilt from its leaves up: change(id, rebuilt) says what stands for node `id`, given the
/// node with the sources that stand for its own. Nodes for which stop(id) is true stay as they are.
template <class Change, class Stop>
Id rebuild(Graph& graph, Id root, const Change& change, const Stop& stop) {
  Reachable reachable;
  std::vector<Id> now(root + 1, kNoId), sources;
  for (Id id : reachable.from(graph, std::span(&root, 1), stop)) {
    now[id] = id;
    if (stop(id)) continue;
    sources.clear();
    for (Id s : graph.sources(id)) sources.push_back(now[s]);
    now[id] = change(id, graph.with_sources(id, sources));
  }
  return now[root];
}
template <class Change>
Id rebuild(Graph& graph, Id root, const Change& change) {
  return rebuild(graph, root, change, [](Id) { return false; });
}

}  // namespace plugrad::codegen
