// What made each node of the session's graph: a call of a tensor function, or a line of the program.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

/// Nodes have ascending ids, so the nodes of one call are a range.
class NodeOrigins {
 public:
  /// The nodes [begin, end) are of `operation`, except those claimed before.
  void claim(Id begin, Id end, uint32_t operation) {
    if (!ranges_.empty()) begin = std::max(begin, ranges_.back().end);
    if (begin >= end) return;
    if (!ranges_.empty() && ranges_.back().end == begin && ranges_.back().operation == operation)
      ranges_.back().end = end;
    else
      ranges_.push_back({begin, end, operation});
  }
  /// The operation that made the node; 0: not known.
  uint32_t of(Id id) const {
    const auto at = std::ranges::upper_bound(ranges_, id, {}, &Range::end);
    return at == ranges_.end() || id < at->begin ? 0 : at->operation;
  }
  /// For a copy of the graph, in which node i is new_id[i], in the same order, or kNoId.
  NodeOrigins renumbered(std::span<const Id> new_id) const {
    NodeOrigins kept;
    for (const Range& range : ranges_)
      for (Id id = range.begin; id < range.end && id < new_id.size(); ++id)
        if (new_id[id] != kNoId) kept.claim(new_id[id], new_id[id] + 1, range.operation);
    return kept;
  }

 private:
  struct Range {
    Id begin, end;
    uint32_t operation;
  };
  std::vector<Range> ranges_;
};

}  // namespace plugrad::engine
