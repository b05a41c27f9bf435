// Buffers are host memory. Large ones stand on huge pages: a first touch of small pages costs more
// than the kernel that fills them.
#include <sys/mman.h>

#include <cstring>

#include "plugin.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::cpu_clang {
namespace {

constexpr uint64_t kHugePage = uint64_t{2} << 20;
constexpr uint64_t kSpanBytes = uint64_t{1} << 20;  // least that one thread copies or fills

// One allocation; sub-buffers share it.
class Memory {
 public:
  Memory(pgr_device& device, uint64_t size, uint64_t align, bool zero)
      : device_(device), is_mapped_(size >= kHugePage), size_(size) {
    const bool ok = is_mapped_ ? map(align) : take(align, zero);
    sdk::require(ok, PGR_STATUS_OUT_OF_MEMORY,
                 "cannot allocate " + std::to_string(size) + " bytes of host memory");
    device_.used_bytes += size_;
  }
  ~Memory() {
    device_.used_bytes -= size_;
    if (is_mapped_)
      ::munmap(mapping_, mapping_bytes_);
    else
      host().free(host().host, data_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  char* data() const { return data_; }

 private:
  const pgr_host_api& host() const { return *device_.plugin->host; }

  bool take(uint64_t align, bool zero) {
    data_ = static_cast<char*>(host().alloc(host().host, size_ ? size_ : 1, align));
    if (data_ && zero) std::memset(data_, 0, size_);
    return data_ != nullptr;
  }
  // The mapping is larger by one alignment, so that an aligned part of the size fits in it.
  bool map(uint64_t align) {
    align = std::max(align, kHugePage);
    mapping_bytes_ = (size_ + kHugePage - 1) / kHugePage * kHugePage + align;
    if (mapping_bytes_ < size_) return false;
    mapping_ = ::mmap(nullptr, mapping_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping_ == MAP_FAILED) return false;
    const uintptr_t begin = reinterpret_cast<uintptr_t>(mapping_);
    data_ = reinterpret_cast<char*>((begin + align - 1) / align * align);
    ::madvise(data_, mapping_bytes_ - align, MADV_HUGEPAGE);
    return true;
  }

  pgr_device& device_;
  bool is_mapped_;
  uint64_t size_;
  char* data_ = nullptr;
  void* mapping_ = nullptr;
  uint64_t mapping_bytes_ = 0;
};

}  // namespace
}  // namespace plugrad::cpu_clang

struct pgr_buffer {
  std::shared_ptr<plugrad::cpu_clang::Memory> memory;
  char* data;
  uint64_t size;
};

namespace plugrad::cpu_clang {
namespace {

void require_range(const pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* what) {
  sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  sdk::require(offset <= buffer->size && size <= buffer->size - offset, PGR_STATUS_INVALID_ARGUMENT,
               std::string(what) + ": bytes " + std::to_string(offset) + " to " +
                   std::to_string(offset) + " + " + std::to_string(size) + " of a buffer of " +
                   std::to_string(buffer->size));
}

template <typename Body>
void for_spans(pgr_device* device, uint64_t count, uint64_t min_span, const Body& body) {
  const pgr_host_api& host = *device->plugin->host;
  host.parallel_for(
      host.host, count, min_span,
      [](void* context, uint64_t begin, uint64_t end, uint32_t) {
        (*static_cast<const Body*>(context))(begin, end);
      },
      const_cast<Body*>(&body));
}

void copy_bytes(pgr_device* device, char* dst, const char* src, uint64_t size) {
  if (size <= kSpanBytes) {
    if (size > 0) std::memcpy(dst, src, size);
    return;
  }
  for_spans(device, size, kSpanBytes, [=](uint64_t begin, uint64_t end) {
    std::memcpy(dst + begin, src + begin, end - begin);
  });
}

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_alloc_desc own = sdk::read(desc);
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require((own.align_bytes & (own.align_bytes - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "alignment " + std::to_string(own.align_bytes) + " is not a power of two");
    auto memory = std::make_shared<Memory>(*device, own.size_bytes,
                                           std::max<uint64_t>(own.align_bytes, kBufferAlign),
                                           (own.flags & PGR_ALLOC_ZERO) != 0);
    char* data = memory->data();
    *out = new pgr_buffer{std::move(memory), data, own.size_bytes};
  });
}

void free_buffer(pgr_device*, pgr_buffer* buffer) {
  delete buffer;
}

pgr_status copy_in(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(dst, offset, size, "dst");
    copy_bytes(device, dst->data + offset, static_cast<const char*>(src), size);
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue*, void* dst, pgr_buffer* src, uint64_t offset,
                    uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(src, offset, size, "src");
    copy_bytes(device, static_cast<char*>(dst), src->data + offset, size);
  });
}

pgr_status copy(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(dst, dst_offset, size, "dst");
    require_range(src, src_offset, size, "src");
    copy_bytes(device, dst->data + dst_offset, src->data + src_offset, size);
  });
}

pgr_status fill(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t offset, uint64_t size,
                const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(dst, offset, size, "dst");
    sdk::require(pattern != nullptr && (pattern_bytes == 1 || pattern_bytes == 2 ||
                                        pattern_bytes == 4 || pattern_bytes == 8),
                 PGR_STATUS_INVALID_ARGUMENT,
                 "a pattern has 1, 2, 4 or 8 bytes, not " + std::to_string(pattern_bytes));
    sdk::require(size % pattern_bytes == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "size " + std::to_string(size) + " is not a multiple of the pattern's " +
                     std::to_string(pattern_bytes));
    char eight[8];
    for (uint64_t i = 0; i < 8; ++i)
      eight[i] = static_cast<const char*>(pattern)[i % pattern_bytes];
    char* to = dst->data + offset;
    for_spans(device, (size + 7) / 8, kSpanBytes / 8, [&](uint64_t begin, uint64_t end) {
      for (uint64_t i = begin; i < end; ++i)
        std::memcpy(to + 8 * i, eight, std::min<uint64_t>(8, size - 8 * i));
    });
  });
}

pgr_status map(pgr_device*, pgr_buffer* buffer, void** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "map: buffer or out is NULL");
    *out = buffer->data;
  });
}

pgr_status unmap(pgr_device*, pgr_buffer* buffer, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "unmap: buffer is NULL");
  });
}

pgr_status sub_buffer(pgr_device*, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(parent, offset, size, "parent");
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require(offset % kBufferAlign == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "offset " + std::to_string(offset) + " is not a multiple of " +
                     std::to_string(kBufferAlign));
    *out = new pgr_buffer{parent->memory, parent->data + offset, size};
  });
}

}  // namespace

void* address_of(const pgr_buffer* buffer) {
  return buffer->data;
}

const pgr_allocator_api* allocator_table() {
  static const pgr_allocator_api table = [] {
    pgr_allocator_api made;
    PGR_INIT(made, ALLOCATOR_API);
    made.alloc = alloc;
    made.free = free_buffer;
    made.copy_in = copy_in;
    made.copy_out = copy_out;
    made.copy = copy;
    made.fill = fill;
    made.map = map;
    made.unmap = unmap;
    made.sub_buffer = sub_buffer;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cpu_clang
