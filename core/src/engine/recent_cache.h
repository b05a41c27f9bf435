// Caches values by hash and drops those not used recently: a program whose shapes never repeat must
// not grow without bound.
#pragma once

#include <unordered_map>
#include <utility>

#include "base/hash.h"

namespace plugrad::engine {

/// A generation is full with `most` values, or with `few` values that occupy `most_bytes` in total:
/// a program may cycle through a few large ones.
struct GenerationSize {
  size_t most, few;
  uint64_t most_bytes;
};

/// Keeps two generations: a full young generation becomes the old one, and the previous old values
/// that were not used since are dropped.
template <class Value>
class RecentCache {
 public:
  explicit RecentCache(GenerationSize size) : limit_(size) {}

  /// Null if absent. Valid until the next call.
  const Value* find(const Hash128& key) {
    if (const auto at = young_.find(key); at != young_.end()) return &at->second.value;
    auto node = old_.extract(key);
    if (node.empty()) return nullptr;
    return &insert(key, std::move(node.mapped().value), node.mapped().bytes);
  }

  const Value& insert(const Hash128& key, Value value, uint64_t bytes) {
    if (is_full()) {
      old_ = std::move(young_);
      young_.clear();
      old_bytes_ = std::exchange(young_bytes_, 0);
    }
    const auto at = young_.insert_or_assign(key, Entry{std::move(value), bytes}).first;
    young_bytes_ += bytes;
    return at->second.value;
  }

  size_t size() const { return young_.size() + old_.size(); }
  /// Values moved from the old generation to the young one count twice.
  uint64_t size_bytes() const { return young_bytes_ + old_bytes_; }
  void clear() {
    young_.clear();
    old_.clear();
    young_bytes_ = old_bytes_ = 0;
  }

 private:
  struct Entry {
    Value value;
    uint64_t bytes;
  };
  using Map = std::unordered_map<Hash128, Entry, Hash128Hasher>;
  bool is_full() const {
    return young_.size() >= limit_.most ||
           (young_.size() >= limit_.few && young_bytes_ >= limit_.most_bytes);
  }
  GenerationSize limit_;
  Map young_, old_;
  uint64_t young_bytes_ = 0, old_bytes_ = 0;
};

}  // namespace plugrad::engine
