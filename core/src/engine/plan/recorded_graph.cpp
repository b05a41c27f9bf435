#include "engine/plan/recorded_graph.h"

#include <algorithm>

#include "engine/session_state.h"
#include "ir/text/printer.h"

namespace plugrad::engine {
namespace {

/// The root below the views that a pending tensor denotes; the number of roots if there is none.
size_t root_of(const CanonicalGraph& canonical, const Graph& graph, Id node) {
  const auto roots = canonical.roots();
  while (true) {
    if (canonical.computes(node)) {
      const auto root = std::ranges::find(roots, canonical.number(node));
      if (root != roots.end()) return static_cast<size_t>(root - roots.begin());
    }
    if (!is_view(graph[node].op)) return roots.size();
    node = graph.sources(node)[0];
  }
}

}  // namespace

RecordedGraph recorded_graph(const SessionState& state, const Graph& graph) {
  const CanonicalGraph& canonical = state.canonical;
  const CanonicalGraph::Scratch copy = canonical.copy();
  RecordedGraph recorded{print(copy.graph, copy.roots, Numbering::FromZero),
                         std::vector<int64_t>(copy.roots.size(), -1)};
  const auto inputs = canonical.inputs();
  for (const auto& [tensor, before] : state.replaced) {
    const auto input = std::ranges::find(inputs, before.lock());
    const size_t root = root_of(canonical, graph, tensor->node);
    if (input != inputs.end() && root < recorded.replaces.size())
      recorded.replaces[root] = input - inputs.begin();
  }
  return recorded;
}

}  // namespace plugrad::engine
