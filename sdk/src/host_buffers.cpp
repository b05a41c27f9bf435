#include "plugrad/sdk/host_buffers.h"

#include <sys/mman.h>

namespace plugrad::sdk {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;

}  // namespace

HostMemory::HostMemory(const pgr_host_api& host, uint64_t size_bytes, uint64_t align_bytes,
                       bool zero, std::atomic<uint64_t>& used_bytes)
    : host_(host), used_bytes_(used_bytes), size_(size_bytes) {
  const bool ok = size_ >= kHugePage ? map(align_bytes) : take(align_bytes, zero);
  require(ok, PGR_STATUS_OUT_OF_MEMORY,
          "cannot allocate " + std::to_string(size_) + " bytes of host memory");
  used_bytes_ += size_;
}

HostMemory::~HostMemory() {
  used_bytes_ -= size_;
  if (mapping_)
    ::munmap(mapping_, mapping_bytes_);
  else
    host_.free(host_.host, data_);
}

bool HostMemory::take(uint64_t align_bytes, bool zero) {
  data_ = static_cast<char*>(host_.alloc(host_.host, size_ ? size_ : 1, align_bytes));
  if (data_ && zero) std::memset(data_, 0, size_);
  return data_ != nullptr;
}

// Maps one additional alignment, so that an aligned range of the size fits. The memory is zeroed.
bool HostMemory::map(uint64_t align_bytes) {
  const uint64_t align = std::max(align_bytes, kHugePage);
  mapping_bytes_ = (size_ + kHugePage - 1) / kHugePage * kHugePage + align;
  if (mapping_bytes_ < size_) return false;
  void* mapping =
      ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return false;
  mapping_ = mapping;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(mapping_);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the next aligned address of the mapping
  data_ = reinterpret_cast<char*>((begin + align - 1) / align * align);
  ::madvise(data_, mapping_bytes_ - align, MADV_HUGEPAGE);
  return true;
}

HostBuffer make_host_buffer(const pgr_host_api& host, const pgr_alloc_desc* desc,
                            uint32_t device_align_bytes, std::atomic<uint64_t>& used_bytes) {
  const pgr_alloc_desc own = read(desc);
  require((own.align_bytes & (own.align_bytes - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
          "alignment " + std::to_string(own.align_bytes) + " is not a power of two");
  HostBuffer buffer;
  buffer.memory = std::make_shared<HostMemory>(
      host, own.size_bytes, std::max<uint64_t>(own.align_bytes, device_align_bytes),
      (own.flags & PGR_ALLOC_ZERO) != 0, used_bytes);
  buffer.data = buffer.memory->data();
  buffer.size = own.size_bytes;
  return buffer;
}

HostBuffer make_sub_buffer(const HostBuffer* parent, uint64_t offset_bytes, uint64_t size_bytes,
                           uint32_t device_align_bytes) {
  require_range(parent, offset_bytes, size_bytes, "parent");
  require(offset_bytes % device_align_bytes == 0, PGR_STATUS_INVALID_ARGUMENT,
          "offset " + std::to_string(offset_bytes) + " is not a multiple of " +
              std::to_string(device_align_bytes));
  return {parent->memory, parent->data + offset_bytes, size_bytes};
}

void require_range(const HostBuffer* buffer, uint64_t offset_bytes, uint64_t size_bytes,
                   const char* what) {
  require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  if (offset_bytes <= buffer->size && size_bytes <= buffer->size - offset_bytes) return;
  throw StatusError(PGR_STATUS_INVALID_ARGUMENT,
                    std::string(what) + ": " + std::to_string(size_bytes) + " bytes at " +
                        std::to_string(offset_bytes) + " of a buffer of " +
                        std::to_string(buffer->size));
}

uint64_t read_pattern(const void* pattern, uint64_t pattern_bytes, uint64_t size_bytes) {
  require(pattern != nullptr && (pattern_bytes == 1 || pattern_bytes == 2 || pattern_bytes == 4 ||
                                 pattern_bytes == 8),
          PGR_STATUS_INVALID_ARGUMENT,
          "a pattern has 1, 2, 4 or 8 bytes, not " + std::to_string(pattern_bytes));
  require(size_bytes % pattern_bytes == 0, PGR_STATUS_INVALID_ARGUMENT,
          "size " + std::to_string(size_bytes) + " is not a multiple of the pattern's " +
              std::to_string(pattern_bytes));
  char eight[8];
  for (uint64_t at = 0; at < 8; at += pattern_bytes)
    std::memcpy(eight + at, pattern, pattern_bytes);
  uint64_t bits;
  std::memcpy(&bits, eight, 8);
  return bits;
}

void write_pattern(char* to, uint64_t size_bytes, uint64_t eight_bytes) {
  for (uint64_t at = 0; at < size_bytes; at += 8)
    std::memcpy(to + at, &eight_bytes, std::min<uint64_t>(8, size_bytes - at));
}

}  // namespace plugrad::sdk
