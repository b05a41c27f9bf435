// Collects the nodes that a plan stores, without duplicates. Insertion order is kept: it is part of
// the plan's key.
#pragma once

#include <algorithm>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace plugrad::engine {

class DistinctRoots {
 public:
  explicit DistinctRoots(std::span<const Id> roots = {}) {
    for (Id root : roots) add(root);
  }
  void add(Id root) {
    if (roots_.size() == kFew) known_.insert(roots_.begin(), roots_.end());
    const bool is_new = roots_.size() < kFew ? std::ranges::find(roots_, root) == roots_.end()
                                             : known_.insert(root).second;
    if (is_new) roots_.push_back(root);
  }
  size_t size() const { return roots_.size(); }
  std::span<const Id> list() const { return roots_; }
  std::vector<Id> take() { return std::move(roots_); }

 private:
  static constexpr size_t kFew = 16;  // up to this many are searched linearly: the set allocates

  std::vector<Id> roots_;
  std::unordered_set<Id> known_;  // all of roots_, once there are more than kFew
};

}  // namespace plugrad::engine
