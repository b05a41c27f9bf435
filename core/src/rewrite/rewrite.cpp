// Rewrites with an explicit stack: a node waits for its sources, and then for its replacement.
#include "rewrite/rewrite.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "base/binding.h"
#include "base/check.h"
#include "ir/facts.h"

namespace plugrad {
namespace {

constexpr Id kInFlight = kNoId - 1;
constexpr uint32_t kNoRule = UINT32_MAX;
constexpr size_t kRecent = 64;
thread_local RewriteTrace* open_trace = nullptr;

}  // namespace

Rewriter::Rewriter(Graph& graph, const RuleTable& table, RewriteOptions options)
    : graph_(graph), table_(table), options_(options), hits_(table.size()) {}

void Rewriter::cover_new_nodes() {
  if (done_.size() < graph_.size()) done_.resize(graph_.size(), kNoId);
}

void Rewriter::finish(Id id, Id result) {
  done_[id] = result;
  stack_.pop_back();
}

// Whether a source must be rewritten first. A source may be pushed twice; the second time it is
// popped.
bool Rewriter::push_sources(Id id) {
  bool pushed = false;
  for (Id s : graph_.sources(id)) {
    if (done_[s] == kInFlight) report_cycle(s);
    if (done_[s] != kNoId) continue;
    push(s);
    pushed = true;
  }
  return pushed;
}

Id Rewriter::rebuilt(Id id) {
  const auto sources = graph_.sources(id);
  const bool same = std::ranges::all_of(sources, [&](Id s) { return done_[s] == s; });
  if (same && options_.rebuild == nullptr) return id;
  scratch_.assign(sources.begin(), sources.end());
  for (Id& s : scratch_) s = done_[s];
  const Id again = options_.rebuild != nullptr
                       ? options_.rebuild(graph_, id, scratch_, options_.context)
                       : graph_.with_sources(id, scratch_);
  if (RewriteTrace* trace = current_trace(); trace && trace->observer && again != id)
    trace->observer->rewrote(graph_, nullptr, id, again);
  return again;
}

Id Rewriter::result(Id id) const {
  return id < done_.size() && done_[id] != kInFlight ? done_[id] : kNoId;
}

Id Rewriter::apply(Id id, Id before, uint32_t& rule) {
  constexpr uint64_t kVisitsBetweenPolls = 256;  // less than a millisecond
  if (++visits_ % kVisitsBetweenPolls == 0) poll_interruption();
  const Id to = table_.apply(graph_, id, options_.context, rule, before);
  if (to == kNoMatch) return to;
  ensure(graph_[to].dtype == graph_[id].dtype, "[rewrite] rule {} turned {} %{} into {} %{}",
         table_[rule].name, name_of(graph_[id].dtype), id, name_of(graph_[to].dtype), to);
  ++hits_[rule];
  if (recent_.size() < kRecent)
    recent_.push_back(rule);
  else
    recent_[hit_count_ % kRecent] = rule;
  if (++hit_count_ > budget_) report_budget();
  if (RewriteTrace* trace = current_trace()) trace->add(graph_, &table_[rule], id, to);
  return to;
}

// Lets `frame` wait until `next` is rewritten.
void Rewriter::forward(Frame& frame, Id next, uint32_t rule) {
  frame.next = next;
  frame.rule = rule;
  if (done_[next] == kInFlight) report_cycle(next);
  if (done_[next] == kNoId) push(next);  // invalidates frame
}

void Rewriter::step_children_first() {
  Frame& frame = stack_.back();
  const Id id = frame.id;
  if (frame.next != kNoId) return finish(id, done_[frame.next]);
  if (push_sources(id)) return;
  const Id again = rebuilt(id);
  cover_new_nodes();
  if (again != id) return forward(frame, again, kNoRule);
  uint32_t rule = kNoRule;
  const Id to = apply(again, id, rule);
  cover_new_nodes();
  if (to == kNoMatch) return finish(id, again);
  forward(frame, to, rule);
}

// Rules see a node first before its sources are rewritten, then, for a fixpoint, the rebuilt node.
void Rewriter::step_parents_first() {
  Frame& frame = stack_.back();
  const Id id = frame.id;
  if (frame.next != kNoId) return finish(id, done_[frame.next]);
  if (frame.body == kNoId) {
    uint32_t rule = kNoRule;
    const Id to = apply(id, id, rule);
    cover_new_nodes();
    if (to != kNoMatch && options_.fixpoint) return forward(frame, to, rule);
    frame.body = to == kNoMatch ? id : to;
    frame.rule = rule;
  }
  if (push_sources(frame.body)) return;
  const Id again = rebuilt(frame.body);
  cover_new_nodes();
  if (again == frame.body || !options_.fixpoint) return finish(id, again);
  forward(frame, again, kNoRule);
}

Id Rewriter::operator()(Id root) {
  cover_new_nodes();
  for (const Frame& f : stack_) done_[f.id] = kNoId;  // left by an error
  stack_.clear();
  if (done_[root] != kNoId) return done_[root];
  const RootScope scope(graph_, root);
  budget_ = hit_count_ + 200'000 + 64 * uint64_t{graph_.size()};
  if (options_.order == Order::ChildrenFirst && !options_.fixpoint) {
    // Visits every node once in the order of ids: sources first.
    Reachable reachable;
    const auto is_done = [&](Id id) { return done_[id] != kNoId; };
    for (Id id : reachable.from(graph_, std::span(&root, 1), is_done)) {
      if (is_done(id)) continue;
      const Id again = rebuilt(id);
      uint32_t rule = kNoRule;
      const Id to = apply(again, id, rule);
      cover_new_nodes();
      done_[id] = to == kNoMatch ? again : to;
    }
    return done_[root];
  }
  push(root);
  while (!stack_.empty()) {
    const Id id = stack_.back().id;
    if (done_[id] != kNoId && done_[id] != kInFlight) {
      stack_.pop_back();
      continue;
    }
    done_[id] = kInFlight;
    if (options_.order == Order::ChildrenFirst)
      step_children_first();
    else
      step_parents_first();
  }
  return done_[root];
}

Id Rewriter::at(Id node) {
  // rules applied below one node, before rules count as endless
  constexpr uint64_t kMostRules = 200'000;
  budget_ = hit_count_ + kMostRules;
  uint32_t rule = kNoRule;
  for (Id to; (to = apply(node, node, rule)) != kNoMatch;) node = to;
  return node;
}

void Rewriter::report_cycle(Id id) const {
  std::set<std::string> names;
  bool inside = false;
  for (const Frame& f : stack_) {
    inside = inside || f.id == id;
    if (inside && f.rule != kNoRule) names.insert(table_[f.rule].name);
  }
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw_error(ErrorKind::Internal,
              fmt::format("[rewrite] rules undo each other at node %{} ({} {}): {}", id,
                          op_info(graph_[id].op).name, name_of(graph_[id].dtype), list));
}

void Rewriter::report_budget() const {
  std::set<std::string> names;
  for (uint32_t rule : recent_) names.insert(table_[rule].name);
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  throw_error(ErrorKind::Internal,
              fmt::format("[rewrite] {} rule applications without an end; the last were of: {}",
                          hit_count_, list));
}

Id rewrite(Graph& g, Id root, const RuleTable& table, const RewriteOptions& options) {
  return Rewriter(g, table, options)(root);
}
Id rewrite(Graph& g, Id root, std::span<const Rule> rules, const RewriteOptions& options) {
  return rewrite(g, root, RuleTable(rules), options);
}

RootScope::RootScope(const Graph& graph, Id root)
    : observer_(open_trace ? open_trace->observer : nullptr) {
  if (observer_) observer_->begins(graph, root);
}
RootScope::~RootScope() {
  if (observer_) observer_->ends();
}

TraceScope::TraceScope(RewriteTrace& trace) : outer_(open_trace) {
  open_trace = &trace;
}
TraceScope::~TraceScope() {
  open_trace = outer_;
}
RewriteTrace* current_trace() {
  return open_trace;
}
void report_replaced_graph() {
  if (open_trace && open_trace->observer) open_trace->observer->replaced_graph();
}

std::string to_string(const TraceEvent& event) {
  std::string_view file = event.rule->file;
  if (const size_t slash = file.rfind('/'); slash != file.npos) file.remove_prefix(slash + 1);
  return fmt::format("{} ({}:{}): %{} -> %{}", event.rule->name, file, event.rule->line, event.from,
                     event.to);
}

}  // namespace plugrad
