// Buffers are host memory; large copies and fills use the host's threads.
#include <cstring>

#include "plugin.h"
#include "plugrad/sdk/host_buffers.h"

struct pgr_buffer : plugrad::sdk::HostBuffer {};

namespace plugrad::cpu_clang {
namespace {

constexpr uint64_t kSpanBytes = uint64_t{1} << 20;  // minimum bytes per thread of a copy or fill

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
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = new pgr_buffer{
        sdk::make_host_buffer(*device->plugin->host, desc, kBufferAlign, device->used_bytes)};
  });
}

void free_buffer(pgr_device*, pgr_buffer* buffer) {
  delete buffer;
}

pgr_status copy_in(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    copy_bytes(device, dst->data + offset, static_cast<const char*>(src), size);
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue*, void* dst, pgr_buffer* src, uint64_t offset,
                    uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(src, offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    copy_bytes(device, static_cast<char*>(dst), src->data + offset, size);
  });
}

pgr_status copy(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, dst_offset, size, "dst");
    sdk::require_range(src, src_offset, size, "src");
    copy_bytes(device, dst->data + dst_offset, src->data + src_offset, size);
  });
}

pgr_status fill(pgr_device* device, pgr_queue*, pgr_buffer* dst, uint64_t offset, uint64_t size,
                const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    const uint64_t eight = sdk::read_pattern(pattern, pattern_bytes, size);
    char* to = dst->data + offset;
    for_spans(device, (size + 7) / 8, kSpanBytes / 8, [=](uint64_t begin, uint64_t end) {
      sdk::write_pattern(to + 8 * begin, std::min(8 * end, size) - 8 * begin, eight);
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
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = new pgr_buffer{sdk::make_sub_buffer(parent, offset, size, kBufferAlign)};
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
