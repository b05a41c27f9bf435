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
  /// Ids may mean other nodes from here on. Nodes keep their numbers where all of the next one
  /// that is added are the same.
  void replaced_graph() { is_replaced_ = true; }
  const std::string& lines() const { return lines_; }

 private:
  struct Known {
    uint64_t hash;  // of op, dtype, sources and arg
    uint32_t number;
  };
  bool is_other(const Graph& graph, Id id) const;
  bool is_known_below(const Graph& graph, Id root) const;
  void begin_graph();
  void add_one(const Graph& graph, Id id);

  std::unordered_map<Id, Known> known_;  // of the present graph
  bool is_replaced_ = false;
  uint32_t offset_ = 0, end_ = 0;
  std::string lines_;  // "[0,"const","f32","1",[]],[…"
};

class StageRecord final : public RewriteObserver {
 public:
  /// Before the stage runs.
  explicit StageRecord(const StageRun& stage);
  void begins(const Graph& graph, Id root) override { open_.push_back({&graph, root}); }
  void ends() override { open_.pop_back(); }
  void rewrote(const Graph& graph, const Rule* rule, Id from, Id to) override;
  void replaced_graph() override { nodes_.replaced_graph(); }
  /// After it ran: writes the line.
  void finish();

 private:
  struct Root {
    const Graph* graph;
    Id id;
  };
  std::string numbers_of(const GraphView& view);
  void note_root(const Graph& graph);

  const StageRun& stage_;
  NodeRecord nodes_;
  std::string before_, rewrites_, roots_;
  std::vector<Root> open_;  // those of the rewriters that run, the innermost last
  int64_t last_root_ = -2;  // in roots_; none so far
  uint64_t count_ = 0, rule_count_ = 0;
};

}  // namespace plugrad
