// The drivers, which apply rules to all nodes below a root without recursion.
#pragma once

#include <vector>

#include "rewrite/rule_table.h"
#include "rewrite/trace.h"

namespace plugrad {

enum class Order : uint8_t { ChildrenFirst, ParentsFirst };

/// Rebuilds `id` from its rewritten sources.
using RebuildFunction = Id (*)(Graph&, Id id, std::span<const Id> sources, RuleContext);

struct RewriteOptions {
  Order order = Order::ChildrenFirst;
  bool fixpoint = false;  // results of rules are rewritten again until no rule applies
  RuleContext context = {};
  /// Without fixpoint, sources first: rebuilds every node before rules see it, if that is more than
  /// the same node with new sources.
  RebuildFunction rebuild = nullptr;
};

/// Rewrites with a memo by id that lasts as long as the object: nodes are immutable, so that each
/// is rewritten once for all roots. Errors: Internal, with the names of the rules, if rules undo
/// each other or do not end.
class Rewriter {
 public:
  Rewriter(Graph& graph, const RuleTable& table, RewriteOptions options = {});
  Id operator()(Id root);
  /// Rewrites one node to a fixpoint without visiting its sources: for builders that make every
  /// node in simplest form. Rule functions may call it recursively.
  Id at(Id node);

  /// The replacement of a node; kNoId if it was not rewritten yet. For rule functions that keep
  /// facts of the nodes they make.
  Id result(Id id) const;

  /// Applications of each rule of the table.
  const std::vector<uint32_t>& hits() const { return hits_; }
  uint64_t visits() const { return visits_; }

 private:
  // A node in progress. `next` is the replacement that it waits for, kNoId before; `rule` made it.
  // `body`: with parents first, the node whose sources are rewritten after the rules saw it.
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
  std::vector<Id> done_;  // by id: the result; kNoId: unknown; kInFlight: in progress
  std::vector<Frame> stack_;
  std::vector<Id> scratch_;
  std::vector<uint32_t> hits_;
  std::vector<uint32_t> recent_;  // last rules applied, for the error message
  uint64_t visits_ = 0, hit_count_ = 0, budget_ = 0;
};

/// A single rewrite. Keep a RuleTable for frequent use, a Rewriter for many roots.
Id rewrite(Graph& g, Id root, const RuleTable& table, const RewriteOptions& options = {});
Id rewrite(Graph& g, Id root, std::span<const Rule> rules, const RewriteOptions& options = {});

}  // namespace plugrad
