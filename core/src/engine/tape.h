// Records the nodes through which a gradient can flow: marked leaves and float nodes above them.
#pragma once

#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// Facts by id, filled on demand by one forward loop; marking an old node refills from there.
class Tape {
 public:
  void mark_leaf(Id id);
  void unmark_leaf(Id id);
  bool is_tracked(const Graph& graph, Id id);
  /// As is_tracked, without the mark on the node itself.
  bool has_tracked_source(const Graph& graph, Id id);
  void clear();

 private:
  void fill(const Graph& graph, Id last);
  static constexpr uint8_t kTracked = 1, kLeaf = 2;
  std::vector<uint8_t> flags_;
  Id filled_ = 0;  // flags below this id are complete
};

}  // namespace plugrad::engine
