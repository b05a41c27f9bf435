// Ops whose result is another look at their source's elements.
#pragma once

#include "uop/graph.h"

namespace plugrad::engine {

/// Ops that show elements of their source.
inline bool is_view(Op op) {
  return (is_movement(op) && op != Op::Pad) || op == Op::Detach || op == Op::Bounded ||
         op == Op::Function;
}

/// Ops that show all elements of their source, perhaps in another order.
inline bool keeps_every_element(Op op) {
  return op == Op::Reshape || op == Op::Permute || op == Op::Expand || op == Op::Flip ||
         op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

/// Ops that show all elements of their source in its order.
inline bool shows_the_same_elements(Op op) {
  return op == Op::Reshape || op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

/// What a state that denotes the node holds: it, below views of all of it.
inline Id held_by(const Graph& graph, Id node) {
  while (keeps_every_element(graph[node].op)) node = graph.sources(node)[0];
  return node;
}

}  // namespace plugrad::engine
