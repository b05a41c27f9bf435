// Which nodes a gradient can flow through: marked leaves and the float nodes above them.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// A fact by id, filled by one forward loop on demand like Shapes; marking an old node refills from
/// there.
class Tape {
 public:
  void mark_leaf(Id id);
  void unmark_leaf(Id id);
  bool is_tracked(const Graph& graph, Id id);
  /// Not counting a mark on the node itself.
  bool has_tracked_source(const Graph& graph, Id id);
  void clear();

 private:
  void fill(const Graph& graph, Id last);
  static constexpr uint8_t kTracked = 1, kLeaf = 2;
  std::vector<uint8_t> flags_;
  Id filled_ = 0;  // flags below this id are complete
};

}  // namespace plugrad::engine
