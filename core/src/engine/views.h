// Ops whose result is a view of their source's elements.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// Ops that show some elements of their source.
inline bool is_view(Op op) {
  return (is_movement(op) && op != Op::Pad) || op == Op::Detach || op == Op::Bounded ||
         op == Op::Function;
}

/// Ops that show all elements of their source, in any order.
inline bool keeps_every_element(Op op) {
  return op == Op::Reshape || op == Op::Permute || op == Op::Expand || op == Op::Flip ||
         op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

/// Ops that show all elements of their source in the same order.
inline bool shows_the_same_elements(Op op) {
  return op == Op::Reshape || op == Op::Detach || op == Op::Bounded || op == Op::Function;
}

/// Casts between integers: the host can apply them to a source that it knows.
inline bool is_integer_cast(const Graph& graph, Id id) {
  return graph[id].op == Op::Cast && is_integer(graph[id].dtype) &&
         is_integer(graph[graph.sources(id)[0]].dtype);
}

/// Integer casts that keep every value.
inline bool is_widening(const Graph& graph, Id id) {
  if (!is_integer_cast(graph, id)) return false;
  const DType from = graph[graph.sources(id)[0]].dtype, to = graph[id].dtype;
  return size_of(to) > size_of(from) && (is_unsigned(from) || !is_unsigned(to));
}

/// Maps a node to the one that a state denoting it holds: below views that keep every element.
class HeldNodes {
 public:
  Id of(const Graph& graph, Id node) {
    while (held_.size() <= node) {
      const auto id = static_cast<Id>(held_.size());
      const bool is_view = keeps_every_element(graph[id].op);
      held_.push_back(is_view ? held_[graph.sources(id)[0]] : id);
    }
    return held_[node];
  }

 private:
  std::vector<Id> held_;
};

}  // namespace plugrad::engine
