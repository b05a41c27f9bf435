// Values by hash, of which those used lately stay: a program whose shapes never repeat must not
// grow for ever.
#pragma once

#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace plugrad::engine {

/// Two generations: when the young one is full it becomes the old one, whose values are dropped
/// unless they were used meanwhile. Holds between `generation` and twice as many of the last used.
template <class Value>
class RecentCache {
 public:
  explicit RecentCache(size_t generation) : generation_(generation) {}

  /// Null when it is not there. Valid until the next call.
  const Value* find(const Hash128& key) {
    if (const auto at = young_.find(key); at != young_.end()) return &at->second;
    auto node = old_.extract(key);
    if (node.empty()) return nullptr;
    return &insert(key, std::move(node.mapped()));
  }

  const Value& insert(const Hash128& key, Value value) {
    if (young_.size() >= generation_) {
      old_ = std::move(young_);
      young_.clear();
    }
    return young_.insert_or_assign(key, std::move(value)).first->second;
  }

  size_t size() const { return young_.size() + old_.size(); }
  void clear() {
    young_.clear();
    old_.clear();
  }

 private:
  using Map = std::unordered_map<Hash128, Value, Hash128Hasher>;
  size_t generation_;
  Map young_, old_;
};

}  // namespace plugrad::engine
