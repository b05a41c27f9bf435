#include "rewrite/stage_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/hash.h"
#include "base/trace/json_line.h"
#include "base/trace/trace.h"
#include "ir/facts.h"
#include "ir/text/printer.h"
#include "rewrite/print_rule.h"

namespace plugrad {
namespace {

constexpr size_t kLongestArg = 200;  // characters: constants may have thousands of elements

// Lists by content: a list's number may mean another one in another graph.
uint64_t hash_of(const Graph& graph, Id id) {
  const Node& node = graph[id];
  const bool has_list = op_info(node.op).arg == ArgKind::List;
  const uint64_t facts[] = {static_cast<uint64_t>(node.op), static_cast<uint64_t>(node.dtype),
                            has_list ? 0 : node.arg};
  uint64_t hash = hash64(std::as_bytes(std::span(facts)));
  hash = hash64(std::as_bytes(graph.sources(node)), hash);
  return has_list ? hash64(std::as_bytes(graph.arg_list(id)), hash) : hash;
}

// The rule's id in the trace, which its first use defines.
uint32_t id_of(const Rule& rule) {
  static std::mutex mutex;
  static auto* const ids = new std::map<const Rule*, uint32_t>;
  const std::lock_guard lock(mutex);
  const auto [at, is_new] = ids->try_emplace(&rule, 0);
  if (!is_new) return at->second;
  at->second = trace::new_id();
  trace::define(trace::JsonLine("rule")
                    .add("id", at->second)
                    .add("name", rule.name)
                    .add("file", source_file(rule))
                    .add("line", rule.line)
                    .add("before", to_string(rule.left))
                    .add("after", right_side(rule))
                    .add("condition", condition(rule))
                    .str());
  return at->second;
}

}  // namespace

bool NodeRecord::is_other(const Graph& graph, Id id) const {
  const auto at = known_.find(id);
  return at != known_.end() && at->second.hash != hash_of(graph, id);
}

bool NodeRecord::is_known_below(const Graph& graph, Id root) const {
  Reachable reachable;
  return std::ranges::all_of(reachable.from(graph, std::span(&root, 1)),
                             [&](Id id) { return known_.contains(id) && !is_other(graph, id); });
}

void NodeRecord::begin_graph() {
  known_.clear();
  offset_ = end_;
}

void NodeRecord::add_one(const Graph& graph, Id id) {
  const uint32_t number = offset_ + id;
  end_ = std::max(end_, number + 1);
  known_.insert_or_assign(id, Known{hash_of(graph, id), number});
  const Node& node = graph[id];
  if (!lines_.empty()) lines_ += ',';
  lines_ += fmt::format("[{},\"{}\",\"{}\",", number, printed_name(node.op), name_of(node.dtype));
  std::string arg = printed_arg(graph, id);
  if (arg.size() > kLongestArg) arg = arg.substr(0, kLongestArg) + "…";
  trace::append_json_string(lines_, arg);
  lines_ += ",[";
  bool is_first = true;
  for (const Id source : graph.sources(node)) {
    lines_ += fmt::format("{}{}", is_first ? "" : ",", offset_ + source);
    is_first = false;
  }
  lines_ += "]]";
}

uint32_t NodeRecord::add(const Graph& graph, Id root) {
  if (std::exchange(is_replaced_, false) && !is_known_below(graph, root)) begin_graph();
  std::vector<std::pair<Id, bool>> stack = {{root, false}};
  while (!stack.empty()) {
    const auto [id, is_left] = stack.back();
    stack.pop_back();
    if (is_other(graph, id)) {
      begin_graph();
      stack = {{root, false}};
      continue;
    }
    if (known_.contains(id)) continue;
    if (is_left) {
      add_one(graph, id);
      continue;
    }
    stack.emplace_back(id, true);
    for (const Id source : graph.sources(id)) stack.emplace_back(source, false);
  }
  return known_.at(root).number;
}

StageRecord::StageRecord(const StageRun& stage)
    : stage_(stage), before_(numbers_of(stage.graph())) {}

std::string StageRecord::numbers_of(const GraphView& view) {
  std::string numbers;
  if (!view.graph) return numbers;
  for (const Id root : view.roots)
    numbers += fmt::format("{}{}", numbers.empty() ? "" : ",", nodes_.add(*view.graph, root));
  return numbers;
}

// Adds the root of the rewrite that follows, if it is another one than before. The root is added
// with its first rewrite: most rewriters change nothing.
void StageRecord::note_root(const Graph& graph) {
  int64_t root = -1;
  if (!open_.empty() && open_.back().graph == &graph) root = nodes_.add(graph, open_.back().id);
  if (root == last_root_) return;
  last_root_ = root;
  roots_ += fmt::format("{}[{},{}]", roots_.empty() ? "" : ",", count_, root);
}

void StageRecord::rewrote(const Graph& graph, const Rule* rule, Id from, Id to) {
  note_root(graph);
  ++count_;
  const uint32_t rule_id = rule ? id_of(*rule) : 0;
  const uint32_t from_number = nodes_.add(graph, from);
  rewrites_ += fmt::format("{}[{},{},{}]", rewrites_.empty() ? "" : ",", rule_id, from_number,
                           nodes_.add(graph, to));
  if (rule) ++rule_count_;
}

void StageRecord::finish() {
  const std::string after = numbers_of(stage_.graph());
  trace::define_stage(trace::JsonLine("stage")
                          .add("id", trace::new_id())
                          .add("run", stage_.run)
                          .add("pipeline", stage_.category)
                          .add("name", stage_.stage.name)
                          .add("meaning", stage_.stage.meaning)
                          .add("text", stage_.text())
                          .add_raw("nodes", "[" + nodes_.lines() + "]")
                          .add_raw("before", "[" + before_ + "]")
                          .add_raw("after", "[" + after + "]")
                          .add_raw("roots", "[" + roots_ + "]")
                          .add_raw("rewrites", "[" + rewrites_ + "]")
                          .str());
  trace::count_rewrites(rule_count_);
}

}  // namespace plugrad
