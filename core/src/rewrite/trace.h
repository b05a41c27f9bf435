// Records each rewrite of a node by a rule, while a TraceScope is open.
#pragma once

#include <string>
#include <vector>

#include "rewrite/rule.h"

namespace plugrad {

struct TraceEvent {
  const Rule* rule;
  Id from, to;
};

/// Sees each rewrite when it happens; also nodes that are rebuilt because their sources changed,
/// with a null rule.
class RewriteObserver {
 public:
  /// A rewriter begins with the graph below `root`; calls nest.
  virtual void begins(const Graph& graph, Id root) = 0;
  virtual void ends() = 0;
  virtual void rewrote(const Graph& graph, const Rule* rule, Id from, Id to) = 0;
  /// A copy took the place of the graph: its ids may mean other nodes.
  virtual void replaced_graph() = 0;

 protected:
  ~RewriteObserver() = default;
};

struct RewriteTrace {
  std::vector<TraceEvent> events;
  RewriteObserver* observer = nullptr;

  void add(const Graph& graph, const Rule* rule, Id from, Id to) {
    events.push_back({rule, from, to});
    if (observer) observer->rewrote(graph, rule, from, to);
  }
};

/// Tells the observer of this thread's trace, if there is one, that `root` is rewritten.
class RootScope {
 public:
  RootScope(const Graph& graph, Id root);
  ~RootScope();
  RootScope(const RootScope&) = delete;
  RootScope& operator=(const RootScope&) = delete;

 private:
  RewriteObserver* const observer_;
};

/// Records the rewrites of this thread in `trace`. Scopes nest; the innermost records.
class TraceScope {
 public:
  explicit TraceScope(RewriteTrace& trace);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  RewriteTrace* outer_;
};

/// The open trace of this thread, or null.
RewriteTrace* current_trace();
/// Tells its observer, if there is one, that a copy took the place of the graph.
void report_replaced_graph();

/// "mul-zero (algebra.cpp:14): %41 -> %7"
std::string to_string(const TraceEvent& event);

}  // namespace plugrad
