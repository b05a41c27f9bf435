// Where each buffer of a device lies: its allocation, offset and size.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "plugrad/plugin_api/memory.h"

namespace plugrad::runtime {

struct MemoryRange {
  pgr_buffer* root = nullptr;  // the allocation
  uint64_t offset = 0, size = 0;
  uint64_t root_size = 0;

  uint64_t end() const { return offset + size; }
  bool overlaps(const MemoryRange& other) const {
    return root == other.root && offset < other.end() && other.offset < end();
  }
  bool operator==(const MemoryRange&) const = default;
};

/// Thread-safe.
class MemoryRanges {
 public:
  void add(pgr_buffer* buffer, uint64_t size, uint64_t allocated) {
    const std::lock_guard lock(mutex_);
    ranges_[buffer] = {buffer, 0, size, allocated};
  }
  void add_part(pgr_buffer* part, pgr_buffer* parent, uint64_t offset, uint64_t size) {
    const std::lock_guard lock(mutex_);
    const auto at = ranges_.find(parent);
    if (at == ranges_.end()) return;
    const MemoryRange of = at->second;
    ranges_[part] = {of.root, of.offset + offset, size, of.root_size};
  }
  void remove(pgr_buffer* buffer) {
    const std::lock_guard lock(mutex_);
    ranges_.erase(buffer);
  }
  std::optional<MemoryRange> of(pgr_buffer* buffer) const {
    const std::lock_guard lock(mutex_);
    const auto at = ranges_.find(buffer);
    return at == ranges_.end() ? std::nullopt : std::optional(at->second);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<pgr_buffer*, MemoryRange> ranges_;
};

}  // namespace plugrad::runtime
