#include <algorithm>

#include "symbolic/symbolic.h"

namespace plugrad {

Substitution::Substitution(Graph& graph, std::span<const std::pair<Id, Id>> map) : graph_(graph) {
  done_.resize(graph.size(), kNoId);
  for (const auto& [from, to] : map) done_[from] = to;
}

Id Substitution::operator()(Id root) {
  if (done_.size() < graph_.size()) done_.resize(graph_.size(), kNoId);
  stack_.assign(1, root);
  while (!stack_.empty()) {
    const Id id = stack_.back();
    const size_t before = stack_.size();
    if (done_[id] == kNoId) {
      for (Id s : graph_.sources(id))
        if (done_[s] == kNoId) stack_.push_back(s);
      if (stack_.size() != before) continue;
      const auto sources = graph_.sources(id);
      scratch_.assign(sources.begin(), sources.end());
      for (Id& s : scratch_) s = done_[s];
      const bool same = std::ranges::equal(scratch_, sources);
      done_[id] = same ? id : graph_.with_sources(id, scratch_);
    }
    stack_.pop_back();
  }
  return done_[root];
}

Id substitute(Graph& graph, Id root, std::span<const std::pair<Id, Id>> map) {
  return Substitution(graph, map)(root);
}

bool depends_on(const Graph& graph, Id id, Id node) {
  if (id < node) return false;
  std::vector<bool> seen(id - node + 1);
  std::vector<Id> stack{id};
  while (!stack.empty()) {
    const Id at = stack.back();
    stack.pop_back();
    if (at == node) return true;
    for (Id s : graph.sources(at)) {
      if (s < node || seen[s - node]) continue;
      seen[s - node] = true;
      stack.push_back(s);
    }
  }
  return false;
}

}  // namespace plugrad
