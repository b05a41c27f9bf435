// Memory of the GPU. Copies between host and device use pinned memory, and return when the host
// memory may be reused.
#include <algorithm>
#include <cstring>

#include "plugin.h"
#include "plugrad/sdk/host_buffers.h"

namespace plugrad::cuda {
namespace {

[[noreturn]] void refuse_allocation(pgr_device& device, CUresult result, uint64_t size_bytes) {
  size_t free_bytes = 0, total_bytes = 0;
  device.driver->memory_info(&free_bytes, &total_bytes);
  fail(device, result,
       std::to_string(size_bytes) + " bytes of " + device.facts.name + ", which has " +
           std::to_string(free_bytes) + " of " + std::to_string(total_bytes) + " free");
}

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const pgr_alloc_desc own = sdk::read(desc);
    sdk::require((own.align_bytes & (own.align_bytes - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "align_bytes is " + std::to_string(own.align_bytes) + ", no power of two");
    const uint64_t align = std::max<uint64_t>(own.align_bytes, kBufferAlign);
    const ContextScope scope(*device);
    auto buffer = std::make_unique<pgr_buffer>();
    buffer->memory = std::make_shared<Memory>(*device, own.size_bytes, align);
    buffer->address = buffer->memory->begin();
    buffer->size = own.size_bytes;
    if (own.flags & PGR_ALLOC_ZERO && own.size_bytes > 0) {
      check(*device,
            device->driver->fill8(buffer->address, 0, own.size_bytes, device->queue->stream),
            "cuMemsetD8Async");
      settle_own_queue(*device);
    }
    *out = buffer.release();
  });
}

// The driver frees the memory after the queued work that uses it.
void free_buffer(pgr_device*, pgr_buffer* buffer) {
  delete buffer;
}

pgr_status copy_in(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    const CUdeviceptr to = address_of(dst, offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    if (size == 0) return;
    const ContextScope scope(*device);
    pgr_queue& on = queue_of(*device, queue);
    on.staging.copy_in(on.stream, to, static_cast<const char*>(src), size);
    if (!queue) settle_own_queue(*device);
    device->bytes_copied += size;
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue* queue, void* dst, pgr_buffer* src,
                    uint64_t offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    const CUdeviceptr from = address_of(src, offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    if (size == 0) return;
    const ContextScope scope(*device);
    pgr_queue& on = queue_of(*device, queue);
    on.staging.copy_out(on.stream, static_cast<char*>(dst), from, size);
    device->bytes_copied += size;
  });
}

pgr_status copy(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    const CUdeviceptr to = address_of(dst, dst_offset, size, "dst");
    const CUdeviceptr from = address_of(src, src_offset, size, "src");
    if (size == 0) return;
    const ContextScope scope(*device);
    check(*device, device->driver->copy(to, from, size, queue_of(*device, queue).stream),
          "cuMemcpyDtoDAsync");
    device->bytes_copied += size;
  });
}

// Uses elements as wide as the pattern allows: 1 or 4 bytes. Other patterns are filled byte by
// byte: each byte is a column of a matrix whose rows are the repetitions.
void queue_fill(pgr_device& device, CUstream stream, CUdeviceptr to, uint64_t size, uint64_t eight,
                uint64_t pattern_bytes) {
  const Driver& driver = *device.driver;
  unsigned char bytes[8];
  std::memcpy(bytes, &eight, 8);
  const auto low = static_cast<uint32_t>(eight), high = static_cast<uint32_t>(eight >> 32);
  if (std::all_of(bytes, bytes + 8, [&](unsigned char byte) { return byte == bytes[0]; }))
    return check(device, driver.fill8(to, bytes[0], size, stream), "cuMemsetD8Async");
  if (low == high && to % 4 == 0 && size % 4 == 0)
    return check(device, driver.fill32(to, low, size / 4, stream), "cuMemsetD32Async");
  for (uint64_t i = 0; i < pattern_bytes; ++i)
    check(device,
          driver.fill_columns8(to + i, pattern_bytes, bytes[i], 1, size / pattern_bytes, stream),
          "cuMemsetD2D8Async");
}

pgr_status fill(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                uint64_t size, const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    const CUdeviceptr to = address_of(dst, offset, size, "dst");
    const uint64_t eight = sdk::read_pattern(pattern, pattern_bytes, size);
    if (size == 0) return;
    const ContextScope scope(*device);
    queue_fill(*device, queue_of(*device, queue).stream, to, size, eight, pattern_bytes);
  });
}

pgr_status sub_buffer(pgr_device*, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const CUdeviceptr address = address_of(parent, offset, size, "sub_buffer");
    sdk::require(offset % kBufferAlign == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "sub_buffer: offset " + std::to_string(offset) + " is no multiple of " +
                     std::to_string(kBufferAlign));
    *out = new pgr_buffer{parent->memory, address, size};
  });
}

}  // namespace

// At least one byte, so that every buffer has a distinct address.
Memory::Memory(pgr_device& device, uint64_t size_bytes, uint64_t align_bytes)
    : device_(device), size_bytes_(size_bytes) {
  const uint64_t extra = align_bytes > kBufferAlign ? align_bytes : 0;
  const uint64_t total = std::max<uint64_t>(size_bytes, 1) + extra;
  const CUresult result =
      total < size_bytes ? kOutOfMemory : device.driver->alloc(&allocation_, total);
  if (result != kSuccess) refuse_allocation(device, result, size_bytes);
  begin_ = (allocation_ + align_bytes - 1) / align_bytes * align_bytes;
  device.used_bytes += size_bytes;
}

Memory::~Memory() {
  device_.used_bytes -= size_bytes_;
  sdk::guard(nullptr, [&] {
    const ContextScope scope(device_);
    device_.driver->free(allocation_);
  });
}

CUdeviceptr address_of(const pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* what) {
  if (!buffer) throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  if (offset > buffer->size || size > buffer->size - offset)
    throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                           std::string(what) + ": " + std::to_string(size) + " bytes at " +
                               std::to_string(offset) + " of a buffer of " +
                               std::to_string(buffer->size));
  return buffer->address + offset;
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
    made.sub_buffer = sub_buffer;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda
