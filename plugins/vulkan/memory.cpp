#include "memory.h"

#include <algorithm>

#include "plugrad/sdk/guard.h"

namespace plugrad::vulkan {
namespace {

constexpr uint64_t kBlockBytes = uint64_t{64} << 20;
constexpr uint64_t kLargeBytes = uint64_t{16} << 20;  // larger allocations get their own block

uint64_t round_up(uint64_t value, uint64_t align) {
  return (value + align - 1) / align * align;
}

// Allocates `size` bytes from the smallest sufficient gap; returns the block's size if there is
// none.
uint64_t take_from(MemoryBlock& block, uint64_t size, uint64_t align) {
  auto best = block.gaps.end();
  for (auto it = block.gaps.begin(); it != block.gaps.end(); ++it) {
    const uint64_t lost = round_up(block.address + it->first, align) - block.address - it->first;
    if (it->second >= size + lost && (best == block.gaps.end() || it->second < best->second))
      best = it;
  }
  if (best == block.gaps.end()) return block.size;
  const auto [begin, bytes] = *best;
  const uint64_t offset = round_up(block.address + begin, align) - block.address;
  block.gaps.erase(best);
  if (offset > begin) block.gaps[begin] = offset - begin;
  if (begin + bytes > offset + size) block.gaps[offset + size] = begin + bytes - offset - size;
  block.used += size;
  return offset;
}

// Merges the gap with its neighbours.
void add_gap(MemoryBlock& block, uint64_t offset, uint64_t size) {
  auto next = block.gaps.lower_bound(offset);
  if (next != block.gaps.end() && next->first == offset + size) {
    size += next->second;
    next = block.gaps.erase(next);
  }
  if (next != block.gaps.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == offset) {
      before->second += size;
      return;
    }
  }
  block.gaps[offset] = size;
}

}  // namespace

Memory::~Memory() {
  for (const auto& block : blocks_) destroy(*block);
}

void Memory::destroy(MemoryBlock& block) {
  if (block.buffer) api_.vkDestroyBuffer(api_.handle, block.buffer, nullptr);
  if (block.memory) api_.vkFreeMemory(api_.handle, block.memory, nullptr);
}

uint64_t Memory::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

MemoryBlock* Memory::add_block(uint32_t type, uint64_t size) {
  auto block = std::make_unique<MemoryBlock>();
  block->type = type;
  block->size = size;
  VkBufferCreateInfo buffer{};
  buffer.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO;
  buffer.size = size;
  buffer.usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT;
  const auto what = [&](const char* call) {
    return std::string(call) + " of " + std::to_string(size) + " bytes on " + facts_.name;
  };
  try {
    check(api_.vkCreateBuffer(api_.handle, &buffer, nullptr, &block->buffer),
          what("vkCreateBuffer"));
    VkMemoryRequirements needs;
    api_.vkGetBufferMemoryRequirements(api_.handle, block->buffer, &needs);
    VkMemoryAllocateFlagsInfo flags{};
    flags.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO;
    flags.flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT;
    VkMemoryAllocateInfo info{};
    info.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO;
    info.pNext = &flags;
    info.allocationSize = needs.size;
    info.memoryTypeIndex = type;
    check(api_.vkAllocateMemory(api_.handle, &info, nullptr, &block->memory),
          what("vkAllocateMemory"));
    check(api_.vkBindBufferMemory(api_.handle, block->buffer, block->memory, 0),
          what("vkBindBufferMemory"));
    void* mapped = nullptr;
    if (facts_.is_mappable(type))
      check(api_.vkMapMemory(api_.handle, block->memory, 0, VK_WHOLE_SIZE, 0, &mapped),
            what("vkMapMemory"));
    block->mapped = static_cast<char*>(mapped);
  } catch (...) {
    destroy(*block);
    throw;
  }
  VkBufferDeviceAddressInfo info{};
  info.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO;
  info.buffer = block->buffer;
  block->address = api_.vkGetBufferDeviceAddress(api_.handle, &info);
  block->gaps[0] = size;
  blocks_.push_back(std::move(block));
  return blocks_.back().get();
}

MemoryRange Memory::take(uint32_t type, uint64_t size, uint64_t align) {
  if (size == 0) return {};
  const std::lock_guard lock(mutex_);
  // Drivers that use host memory would overcommit.
  sdk::require(used_ + size <= facts_.memory_bytes(), PGR_STATUS_OUT_OF_MEMORY,
               std::to_string(size) + " bytes asked for, " + std::to_string(used_) + " of " +
                   std::to_string(facts_.memory_bytes()) + " in use on " + facts_.name);
  const uint64_t bytes = round_up(size, kBufferAlign);
  for (const auto& block : blocks_) {
    if (block->type != type || (bytes > kLargeBytes && block->used > 0)) continue;
    const uint64_t offset = take_from(*block, bytes, align);
    if (offset == block->size) continue;
    used_ += bytes;
    return {block.get(), offset, bytes};
  }
  const uint64_t slack = align > kBufferAlign ? align : 0;
  const uint64_t wanted =
      bytes > kLargeBytes ? bytes + slack : std::max(kBlockBytes, bytes + slack);
  MemoryBlock* block = add_block(type, wanted);
  const uint64_t offset = take_from(*block, bytes, align);
  used_ += bytes;
  return {block, offset, bytes};
}

// Keeps one empty block of the default size for the next allocation.
void Memory::give_back(const MemoryRange& range) {
  if (!range.block) return;
  const std::lock_guard lock(mutex_);
  MemoryBlock& block = *range.block;
  add_gap(block, range.offset, range.size);
  block.used -= range.size;
  used_ -= range.size;
  if (block.used > 0) return;
  const bool is_usual = block.size == kBlockBytes;
  const bool has_other = std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& other) {
    return other.get() != &block && other->used == 0 && other->type == block.type;
  });
  if (is_usual && !has_other) return;
  destroy(block);
  std::erase_if(blocks_, [&](const auto& other) { return other.get() == &block; });
}

}  // namespace plugrad::vulkan
