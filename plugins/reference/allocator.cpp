// Buffers are host memory.
#include <cstring>
#include <memory>

#include "plugin.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::reference {
namespace {

void require_range(const pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* what) {
  sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  sdk::require(offset <= buffer->size && size <= buffer->size - offset, PGR_STATUS_INVALID_ARGUMENT,
               std::string(what) + ": " + std::to_string(size) + " bytes at " +
                   std::to_string(offset) + " of a buffer of " + std::to_string(buffer->size));
}

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return sdk::guard(error, [&] {
    const pgr_alloc_desc own = sdk::read(desc);
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require((own.align_bytes & (own.align_bytes - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "alignment " + std::to_string(own.align_bytes) + " is not a power of two");
    auto buffer =
        std::unique_ptr<pgr_buffer>(new pgr_buffer{device, nullptr, own.size_bytes, nullptr, 1});
    const pgr_host_api& host = *device->plugin->host;
    buffer->data =
        static_cast<char*>(host.alloc(host.host, std::max<uint64_t>(own.size_bytes, 1),
                                      std::max<uint64_t>(own.align_bytes, kBufferAlign)));
    sdk::require(buffer->data != nullptr, PGR_STATUS_OUT_OF_MEMORY,
                 "cannot allocate " + std::to_string(own.size_bytes) + " bytes");
    if (own.flags & PGR_ALLOC_ZERO) std::memset(buffer->data, 0, own.size_bytes);
    device->used_bytes += own.size_bytes;
    *out = buffer.release();
  });
}

void free_buffer(pgr_device* device, pgr_buffer* buffer) {
  while (buffer && buffer->holders.fetch_sub(1) == 1) {
    pgr_buffer* parent = buffer->parent;
    if (!parent) {
      const pgr_host_api& host = *buffer->device->plugin->host;
      device->used_bytes -= buffer->size;
      host.free(host.host, buffer->data);
    }
    delete buffer;
    buffer = parent;
  }
}

pgr_status copy_in(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t offset, const void* src,
                   uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(dst, offset, size, "dst");
    if (size > 0) std::memcpy(dst->data + offset, src, size);
  });
}

pgr_status copy_out(pgr_device*, pgr_queue*, void* dst, pgr_buffer* src, uint64_t offset,
                    uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(src, offset, size, "src");
    if (size > 0) std::memcpy(dst, src->data + offset, size);
  });
}

pgr_status copy(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(dst, dst_offset, size, "dst");
    require_range(src, src_offset, size, "src");
    if (size > 0) std::memcpy(dst->data + dst_offset, src->data + src_offset, size);
  });
}

pgr_status fill(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t offset, uint64_t size,
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
    for (uint64_t at = 0; at < size; at += pattern_bytes)
      std::memcpy(dst->data + offset + at, pattern, pattern_bytes);
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

pgr_status sub_buffer(pgr_device* device, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(parent, offset, size, "parent");
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::require(offset % kBufferAlign == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "offset " + std::to_string(offset) + " is not a multiple of " +
                     std::to_string(kBufferAlign));
    *out = new pgr_buffer{device, parent->data + offset, size, parent, 1};
    ++parent->holders;
  });
}

}  // namespace

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

}  // namespace plugrad::reference
