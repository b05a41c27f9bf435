// Memory that is handed out and given back in the order of time: the smallest block that fits, and
// neighbours that are free become one. Each call takes logarithmic time.
#pragma once

#include <cstdint>
#include <map>
#include <set>

namespace plugrad::schedule {

class FreeBlocks {
 public:
  /// Where `size_bytes` would lie.
  uint64_t offset_for(uint64_t size_bytes) const;
  void take(uint64_t offset, uint64_t size_bytes);
  void give_back(uint64_t offset, uint64_t size_bytes);
  /// Behind all that was ever handed out.
  uint64_t end() const { return end_; }

 private:
  using Block = std::map<uint64_t, uint64_t>::iterator;
  void add(uint64_t begin, uint64_t end);
  void remove(Block block);
  std::map<uint64_t, uint64_t> ends_;                // of free blocks, by where they begin
  std::set<std::pair<uint64_t, uint64_t>> by_size_;  // with where they begin
  uint64_t end_ = 0;
};

}  // namespace plugrad::schedule
