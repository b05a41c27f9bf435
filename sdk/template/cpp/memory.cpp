// SPDX-License-Identifier: 0BSD
// Buffers are host memory. FILL: allocation and copies of your device
#include <cstring>

#include "plugin.h"

namespace acme_plugin {
namespace {

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(device && out, PGR_STATUS_INVALID_ARGUMENT, "alloc: device or out is NULL");
    *out = new pgr_buffer{
        sdk::make_host_buffer(*device->plugin->host, desc, kBufferAlign, device->used_bytes)};
  });
}

void free_buffer(pgr_device*, pgr_buffer* buffer) {
  delete buffer;
}

pgr_status copy_in(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t offset, const void* src,
                   uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    if (size > 0) std::memcpy(dst->data + offset, src, size);
  });
}

pgr_status copy_out(pgr_device*, pgr_queue*, void* dst, pgr_buffer* src, uint64_t offset,
                    uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(src, offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    if (size > 0) std::memcpy(dst, src->data + offset, size);
  });
}

pgr_status copy(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t dst_offset, pgr_buffer* src,
                uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, dst_offset, size, "dst");
    sdk::require_range(src, src_offset, size, "src");
    const char* to = dst->data + dst_offset;
    const char* from = src->data + src_offset;
    sdk::require(to + size <= from || from + size <= to, PGR_STATUS_INVALID_ARGUMENT,
                 "copy: the ranges overlap");
    if (size > 0) std::memcpy(dst->data + dst_offset, from, size);
  });
}

pgr_status fill(pgr_device*, pgr_queue*, pgr_buffer* dst, uint64_t offset, uint64_t size,
                const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    sdk::write_pattern(dst->data + offset, size, sdk::read_pattern(pattern, pattern_bytes, size));
  });
}

pgr_status map(pgr_device*, pgr_buffer* buffer, void** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer && out, PGR_STATUS_INVALID_ARGUMENT, "map: buffer or out is NULL");
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
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = new pgr_buffer{sdk::make_sub_buffer(parent, offset, size, kBufferAlign)};
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

}  // namespace acme_plugin
