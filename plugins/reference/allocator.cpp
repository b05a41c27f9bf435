// Buffers are host memory. Calls on a queue copy their arguments, and memory lives until the queued
// work is done.
#include <cstring>

#include "work_queue.h"

namespace plugrad::reference {
namespace {

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

pgr_status copy_in(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    if (size == 0) return;
    device->bytes_copied += size;
    char* to = dst->data + offset;
    const char* from = static_cast<const char*>(src);
    WorkQueue* const worker = work_queue_of(*device, queue);
    if (!worker) {
      std::memcpy(to, from, size);
      return;
    }
    // The caller may reuse its memory before the queue reaches this work.
    auto run = [to, bytes = std::string(from, size)] {
      // NOLINTNEXTLINE(bugprone-not-null-terminated-result): bytes of any kind
      std::memcpy(to, bytes.data(), bytes.size());
    };
    worker->submit({std::move(run), {dst->memory}});
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue* queue, void* dst, pgr_buffer* src,
                    uint64_t offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(src, offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    if (WorkQueue* worker = work_queue_of(*device, queue)) worker->finish();
    if (size > 0) std::memcpy(dst, src->data + offset, size);
    device->bytes_copied += size;
  });
}

pgr_status copy(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(dst && src, PGR_STATUS_INVALID_ARGUMENT, "copy: dst or src is NULL");
    submit(*device, queue, make_work(*device, CopyWork{*dst, *src, dst_offset, src_offset, size}));
  });
}

pgr_status fill(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                uint64_t size, const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require_range(dst, offset, size, "dst");
    const uint64_t eight = sdk::read_pattern(pattern, pattern_bytes, size);
    Work work;
    work.holds = {dst->memory};
    work.run = [device, eight, size, to = dst->data + offset] {
      sdk::write_pattern(to, size, eight);
      device->bytes_copied += size;
    };
    submit(*device, queue, std::move(work));
  });
}

pgr_status map(pgr_device* device, pgr_buffer* buffer, void** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "map: buffer or out is NULL");
    wait_for(*device, buffer->memory.get());
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

}  // namespace plugrad::reference
