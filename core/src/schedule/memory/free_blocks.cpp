#include "schedule/memory/free_blocks.h"

#include <algorithm>
#include <iterator>

namespace plugrad::schedule {

uint64_t FreeBlocks::offset_for(uint64_t size_bytes) const {
  const auto fits = by_size_.lower_bound({size_bytes, 0});
  if (fits != by_size_.end()) return fits->second;
  const bool ends_free = !ends_.empty() && ends_.rbegin()->second == end_;
  return ends_free ? ends_.rbegin()->first : end_;
}

void FreeBlocks::take(uint64_t offset, uint64_t size_bytes) {
  const uint64_t end = offset + size_bytes;
  if (const auto block = ends_.find(offset); block != ends_.end()) {
    const uint64_t free_to = block->second;
    remove(block);
    if (free_to > end) add(end, free_to);
  }
  end_ = std::max(end_, end);
}

void FreeBlocks::give_back(uint64_t offset, uint64_t size_bytes) {
  uint64_t begin = offset, end = offset + size_bytes;
  auto next = ends_.lower_bound(begin);
  if (next != ends_.begin()) {
    const auto before = std::prev(next);
    if (before->second == begin) {
      begin = before->first;
      remove(before);
    }
  }
  if (next != ends_.end() && next->first == end) {
    end = next->second;
    remove(next);
  }
  add(begin, end);
}

void FreeBlocks::add(uint64_t begin, uint64_t end) {
  ends_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

void FreeBlocks::remove(Block block) {
  by_size_.erase({block->second - block->first, block->first});
  ends_.erase(block);
}

}  // namespace plugrad::schedule
