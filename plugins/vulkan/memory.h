// Suballocates device memory from blocks. A block is one VkBuffer of the block's size, so that a
// range is an offset for copies and an address for kernels.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/facts.h"

namespace plugrad::vulkan {

struct MemoryBlock {
  VkDeviceMemory memory = VK_NULL_HANDLE;
  VkBuffer buffer = VK_NULL_HANDLE;
  uint64_t size = 0, used = 0;
  VkDeviceAddress address = 0;
  char* mapped = nullptr;  // nullptr: not mappable
  uint32_t type = 0;
  std::map<uint64_t, uint64_t> gaps;  // from offset to size
};

// A range of one block; size 0 is empty.
struct MemoryRange {
  MemoryBlock* block = nullptr;
  uint64_t offset = 0, size = 0;
  VkDeviceAddress address() const { return block ? block->address + offset : 0; }
  char* mapped() const { return block && block->mapped ? block->mapped + offset : nullptr; }
};

// Thread-safe.
class Memory {
 public:
  Memory(const DeviceApi& api, const Facts& facts) : api_(api), facts_(facts) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Throws StatusError (OUT_OF_MEMORY).
  MemoryRange take(uint32_t type, uint64_t size, uint64_t align);
  // The range must no longer be in use.
  void give_back(const MemoryRange& range);
  uint64_t used_bytes() const;

 private:
  MemoryBlock* add_block(uint32_t type, uint64_t size);
  void destroy(MemoryBlock& block);

  const DeviceApi& api_;
  const Facts& facts_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<MemoryBlock>> blocks_;
  uint64_t used_ = 0;
};

}  // namespace plugrad::vulkan
