// The drivers: apply rules everywhere below a root, without recursion.
#pragma once

#include <vector>

#include "rewrite/rule_table.h"
#include "rewrite/trace.h"

namespace plugrad {

enum class Order : uint8_t { ChildrenFirst, ParentsFirst };

/// The node that stands for `id`, given what stands for its sources.
using RebuildFunction = Id (*)(Graph&, Id id, std::span<const Id> sources, RuleContext);

struct RewriteOptions {
  Order order = Order::ChildrenFirst;
  bool fixpoint = false;  // what a rule returns is rewritten again, until no rule applies
  RuleContext context = {};
  /// Children first, no fixpoint: how every node is made again before rules see it, where that is
  /// not the same node of the new sources.
  RebuildFunction rebuild = nullptr;
};

/// Rewrites with a memo by id that lasts as long as the object: nodes never change, so a node that
/// was rewritten once is never visited again, whichever root reaches it. Errors: Internal, naming
/// the rules, when rules undo each other or never end.
class Rewriter {
 public:
  Rewriter(Graph& graph, const RuleTable& table, RewriteOptions options = {});
  Id operator()(Id root);
  /// Rewrites one node to a fixpoint, whose sources are taken as they are: for those who make nodes
  /// in their simplest form. Rule functions may call it again.
  Id at(Id node);

  /// What stands for a node, kNoId when it was not rewritten yet: for rule functions that note
  /// facts about nodes they made.
  Id result(Id id) const;

  /// How often each rule of the table applied.
  const std::vector<uint32_t>& hits() const { return hits_; }
  uint64_t visits() const { return visits_; }

 private:
  // A node under way. `next` is what it became and waits for, kNoId before; `rule` made it so.
  // `body`: parents first, the node whose sources are rewritten, once the rules have seen it.
  struct Frame {
    Id id, next, body;
    uint32_t rule;
  };
  bool push_sources(Id id);
  Id rebuilt(Id id);
  void push(Id id) { stack_.push_back({id, kNoId, kNoId, UINT32_MAX}); }
  void cover_new_nodes();
  void finish(Id id, Id result);
  void step_children_first();
  void step_parents_first();
  Id apply(Id id, Id before, uint32_t& rule);
  void forward(Frame& frame, Id next, uint32_t rule);
  [[noreturn]] void report_cycle(Id id) const;
  [[noreturn]] void report_budget() const;

  Graph& graph_;
  const RuleTable& table_;
  RewriteOptions options_;
  std::vector<Id> done_;  // by id: the result, kNoId when not known, kUnderWay once begun
  std::vector<Frame> stack_;
  std::vector<Id> scratch_;
  std::vector<uint32_t> hits_;
  std::vector<uint32_t> recent_;  // last rules, for the report
  uint64_t visits_ = 0, hit_count_ = 0, budget_ = 0;
};

/// One rewrite. For tables used often, keep a RuleTable; for many roots, a Rewriter.
Id rewrite(Graph& g, Id root, const RuleTable& table, const RewriteOptions& options = {});
Id rewrite(Graph& g, Id root, std::span<const Rule> rules, const RewriteOptions& options = {});

}  // namespace plugrad
