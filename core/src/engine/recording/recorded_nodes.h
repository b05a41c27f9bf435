// The nodes that a function of tensors recorded, to be added again for other operands of the same
// kinds: a composed function then costs the lookups of its nodes, not the calls that it is made of.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/recent_cache.h"
#include "ir/graph.h"

namespace plugrad::engine {

class RecordedNodes {
 public:
  /// The nodes from `operands`, distinct Buffers, to `results`. Nothing if one cannot be copied: it
  /// is told apart by its number (a call of a function, an identity), or is another value.
  static std::optional<RecordedNodes> between(const Graph& graph, std::span<const Id> operands,
                                              std::span<const Id> results);

  /// Adds the nodes for these operands; `graph_number` tells apart the graphs whose lists it knows.
  /// Returns all nodes, of which result(i) are the results. Valid until the next call.
  std::span<const Id> add_to(Graph& graph, uint64_t graph_number, std::span<const Id> operands);
  size_t result_count() const { return results_.size(); }
  uint32_t result(size_t number) const { return results_[number]; }
  uint64_t size_bytes() const;

 private:
  struct Row {
    Op op;
    DType dtype;
    uint16_t source_count;
    uint32_t first_source;  // in sources_
    uint64_t arg;           // a list: its index in lists_
  };
  std::vector<Row> rows_;
  std::vector<uint32_t> sources_;  // operands come first, then rows
  std::vector<std::vector<int64_t>> lists_;
  std::vector<uint32_t> results_;
  std::vector<ListId> list_ids_;  // in graph number known_graph_
  uint64_t known_graph_ = 0;
  std::vector<Id> added_;
};

/// By hash of what decides the nodes (tensor/recording/remembered.h).
using RecordedNodesCache = RecentCache<std::shared_ptr<RecordedNodes>>;

}  // namespace plugrad::engine
