// Nodes that a plan stores: each once, in the order in which they were added, which is part of the
// plan's key.
#pragma once

#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "uop/graph.h"

namespace plugrad::engine {

class DistinctRoots {
 public:
  explicit DistinctRoots(std::span<const Id> roots = {}) {
    for (Id root : roots) add(root);
  }
  void add(Id root) {
    if (known_.insert(root).second) roots_.push_back(root);
  }
  size_t size() const { return roots_.size(); }
  std::span<const Id> list() const { return roots_; }
  std::vector<Id> take() { return std::move(roots_); }

 private:
  std::vector<Id> roots_;
  std::unordered_set<Id> known_;
};

}  // namespace plugrad::engine
