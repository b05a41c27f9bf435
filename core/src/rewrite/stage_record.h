// Records one run of a stage for the trace: the graphs before and after it, and each rewrite.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "rewrite/stage.h"
#include "rewrite/trace.h"

namespace plugrad {

/// The nodes of a stage as JSON. A stage may replace its graph, after which ids mean other nodes:
/// those get new numbers.
class NodeRecord {
 public:
  /// The number of the node; adds it and all below it.
  uint32_t add(const Graph& graph, Id id);
  const std::string& lines() const { return lines_; }

 private:
  struct Known {
    Node node;
    uint32_t number;
  };
  bool is_other(const Graph& graph, Id id) const;
  void add_one(const Graph& graph, Id id);

  std::unordered_map<Id, Known> known_;  // of the present graph
  uint32_t offset_ = 0, end_ = 0;
  std::string lines_;  // "[0,"const","f32","1",[]],[…"
};

class StageRecord final : public RewriteObserver {
 public:
  /// Before the stage runs.
  explicit StageRecord(const StageRun& stage);
  void rewrote(const Graph& graph, const Rule* rule, Id from, Id to) override;
  /// After it ran: writes the line.
  void finish();

 private:
  std::string numbers_of(const GraphView& view);

  const StageRun& stage_;
  NodeRecord nodes_;
  std::string before_, rewrites_;
  uint64_t rule_count_ = 0;
};

}  // namespace plugrad
