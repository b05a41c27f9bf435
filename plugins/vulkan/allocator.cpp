// Buffers are ranges of device memory. Host copies are direct if the host can map the memory and no
// work is in flight; otherwise they use staging memory.
#include <algorithm>
#include <cstring>

#include "plugin.h"
#include "plugrad/sdk/host_buffers.h"

namespace plugrad::vulkan {
namespace {

constexpr uint64_t kStagingBytes = uint64_t{4} << 20;
// A larger copy into mappable memory waits for the queue, which costs less than copying twice.
constexpr uint64_t kSmallCopy = uint64_t{1} << 20;

// Returns the memory when its last user is gone and the queued work is done.
std::shared_ptr<const MemoryRange> share(pgr_device& device, const MemoryRange& range) {
  if (!range.block) return nullptr;
  return std::shared_ptr<const MemoryRange>(new MemoryRange(range),
                                            [&device](const MemoryRange* held) {
                                              sdk::guard(nullptr, [&] { retire(device, *held); });
                                              delete held;
                                            });
}

uint64_t alignment_of(const pgr_alloc_desc& desc) {
  sdk::require((desc.align_bytes & (desc.align_bytes - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
               "alignment " + std::to_string(desc.align_bytes) + " is no power of two");
  sdk::require(desc.align_bytes <= (uint64_t{1} << 30), PGR_STATUS_LIMIT_EXCEEDED,
               "alignment " + std::to_string(desc.align_bytes) + "; at most 2^30");
  return std::max<uint64_t>(desc.align_bytes, kBufferAlign);
}

void fill_with_zeros(pgr_device& device, const MemoryRange& range) {
  if (range.mapped()) {
    std::memset(range.mapped(), 0, range.size);
    return;
  }
  Stream& stream = *device.streams.front();
  stream.record([&](VkCommandBuffer commands) {
    device.api.vkCmdFillBuffer(commands, range.block->buffer, range.offset, range.size, 0);
  });
  stream.finish();
}

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const pgr_alloc_desc own = sdk::read(desc);
    const uint64_t align = alignment_of(own);
    sdk::require(own.size_bytes <= device->facts.memory_bytes(), PGR_STATUS_OUT_OF_MEMORY,
                 std::to_string(own.size_bytes) + " bytes asked for; " + device->facts.name +
                     " has " + std::to_string(device->facts.memory_bytes()));
    sdk::require(own.size_bytes <= device->caps.max_buffer_bytes, PGR_STATUS_LIMIT_EXCEEDED,
                 std::to_string(own.size_bytes) + " bytes asked for; a buffer of " +
                     device->facts.name + " has at most " +
                     std::to_string(device->caps.max_buffer_bytes));
    const bool for_host = own.flags & PGR_ALLOC_HOST_VISIBLE;
    const uint32_t type = for_host ? device->facts.host_memory : device->facts.device_memory;
    auto buffer = std::make_unique<pgr_buffer>();
    buffer->memory = share(*device, take_memory(*device, type, own.size_bytes, align));
    buffer->size = own.size_bytes;
    if (buffer->memory && (own.flags & PGR_ALLOC_ZERO)) fill_with_zeros(*device, *buffer->memory);
    *out = buffer.release();
  });
}

void free_buffer(pgr_device* device, pgr_buffer* buffer) {
  if (buffer && buffer->shadow) sdk::guard(nullptr, [&] { retire(*device, *buffer->shadow); });
  delete buffer;
}

// Calls `copy` for `size` bytes, in pieces of staging memory.
template <typename Copy>
void by_pieces(pgr_device& device, uint64_t size, const Copy& copy) {
  for (uint64_t at = 0; at < size; at += kStagingBytes) {
    const uint64_t bytes = std::min(kStagingBytes, size - at);
    const MemoryRange piece = take_memory(device, device.facts.host_memory, bytes, kBufferAlign);
    const auto held = share(device, piece);
    copy(piece, at, bytes);
  }
}

pgr_buffer as_buffer(const MemoryRange& range) {
  pgr_buffer buffer;
  buffer.memory = std::make_shared<const MemoryRange>(range);
  buffer.size = range.size;
  return buffer;
}

void copy_through_staging(pgr_device& device, Stream& stream, const pgr_buffer& dst,
                          uint64_t offset, const char* from, uint64_t size) {
  by_pieces(device, size, [&](const MemoryRange& piece, uint64_t at, uint64_t bytes) {
    std::memcpy(piece.mapped(), from + at, bytes);
    const pgr_buffer staging = as_buffer(piece);
    stream.record([&](VkCommandBuffer commands) {
      record_copy(device.api, commands, dst, offset + at, staging, 0, bytes);
    });
  });
}

pgr_status copy_in(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return call(device, error, [&] {
    require_range(dst, offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    if (size == 0) return;
    device->bytes_copied += size;
    Stream& stream = stream_of(*device, queue);
    const char* from = static_cast<const char*>(src);
    if (dst->mapped() && (size > kSmallCopy || stream.is_idle())) {
      stream.finish();
      std::memcpy(dst->mapped() + offset, from, size);
    } else {
      copy_through_staging(*device, stream, *dst, offset, from, size);
    }
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue* queue, void* dst, pgr_buffer* src,
                    uint64_t offset, uint64_t size, pgr_error* error) {
  return call(device, error, [&] {
    require_range(src, offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    Stream& stream = stream_of(*device, queue);
    stream.finish();
    report_cut_loops(*device);
    if (size == 0) return;
    device->bytes_copied += size;
    if (src->mapped()) {
      std::memcpy(dst, src->mapped() + offset, size);
      return;
    }
    by_pieces(*device, size, [&](const MemoryRange& piece, uint64_t at, uint64_t bytes) {
      const pgr_buffer staging = as_buffer(piece);
      stream.record([&](VkCommandBuffer commands) {
        record_copy(device->api, commands, staging, 0, *src, offset + at, bytes);
      });
      stream.finish();
      std::memcpy(static_cast<char*>(dst) + at, piece.mapped(), bytes);
    });
  });
}

pgr_status copy(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return call(device, error, [&] {
    require_range(dst, dst_offset, size, "dst");
    require_range(src, src_offset, size, "src");
    if (size == 0) return;
    device->bytes_copied += size;
    stream_of(*device, queue).record([&](VkCommandBuffer commands) {
      record_copy(device->api, commands, *dst, dst_offset, *src, src_offset, size);
    });
  });
}

// If vkCmdFillBuffer cannot: copies a piece of the pattern repeatedly.
void fill_by_copies(pgr_device& device, Stream& stream, const pgr_buffer& dst, uint64_t offset,
                    uint64_t size, uint64_t eight) {
  constexpr uint64_t kPiece = 64 << 10;
  by_pieces(device, std::min(size, kPiece),
            [&](const MemoryRange& piece, uint64_t, uint64_t bytes) {
              sdk::write_pattern(piece.mapped(), bytes, eight);
              const pgr_buffer staging = as_buffer(piece);
              stream.record([&](VkCommandBuffer commands) {
                for (uint64_t at = 0; at < size; at += bytes)
                  record_copy(device.api, commands, dst, offset + at, staging, 0,
                              std::min(bytes, size - at));
              });
            });
}

pgr_status fill(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                uint64_t size, const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return call(device, error, [&] {
    require_range(dst, offset, size, "dst");
    const uint64_t eight = sdk::read_pattern(pattern, pattern_bytes, size);
    if (size == 0) return;
    device->bytes_copied += size;
    Stream& stream = stream_of(*device, queue);
    const uint32_t low = static_cast<uint32_t>(eight), high = static_cast<uint32_t>(eight >> 32);
    const uint64_t at = dst->memory->offset + dst->offset + offset;
    if (low != high || at % 4 != 0 || size % 4 != 0)
      return fill_by_copies(*device, stream, *dst, offset, size, eight);
    stream.record([&](VkCommandBuffer commands) {
      device->api.vkCmdFillBuffer(commands, dst->memory->block->buffer, at, size, low);
    });
  });
}

pgr_status map(pgr_device* device, pgr_buffer* buffer, void** out, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(buffer != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "map: buffer or out is NULL");
    finish_all(*device);
    report_cut_loops(*device);
    if (buffer->mapped() || !buffer->memory) {
      *out = buffer->mapped();
      return;
    }
    // Memory that the host cannot map: uses a host copy, which unmap writes back.
    sdk::require(!buffer->shadow, PGR_STATUS_BUSY, "the buffer is mapped already");
    const MemoryRange range =
        take_memory(*device, device->facts.host_memory, buffer->size, kBufferAlign);
    buffer->shadow = std::make_shared<MemoryRange>(range);
    const pgr_buffer shadow = as_buffer(range);
    Stream& stream = *device->streams.front();
    stream.record([&](VkCommandBuffer commands) {
      record_copy(device->api, commands, shadow, 0, *buffer, 0, buffer->size);
    });
    stream.finish();
    *out = range.mapped();
  });
}

pgr_status unmap(pgr_device* device, pgr_buffer* buffer, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "unmap: buffer is NULL");
    if (!buffer->shadow) return;
    const pgr_buffer shadow = as_buffer(*buffer->shadow);
    Stream& stream = *device->streams.front();
    stream.record([&](VkCommandBuffer commands) {
      record_copy(device->api, commands, *buffer, 0, shadow, 0, buffer->size);
    });
    stream.finish();
    retire(*device, *buffer->shadow);
    buffer->shadow.reset();
  });
}

pgr_status sub_buffer(pgr_device* device, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    require_range(parent, offset, size, "parent");
    sdk::require(
        offset % kBufferAlign == 0, PGR_STATUS_INVALID_ARGUMENT,
        "offset " + std::to_string(offset) + " is no multiple of " + std::to_string(kBufferAlign));
    auto buffer = std::make_unique<pgr_buffer>();
    buffer->memory = parent->memory;
    buffer->offset = parent->offset + offset;
    buffer->size = size;
    *out = buffer.release();
  });
}

}  // namespace

void require_range(const pgr_buffer* buffer, uint64_t offset, uint64_t size, const char* what) {
  sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  if (offset <= buffer->size && size <= buffer->size - offset) return;
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                         std::string(what) + ": " + std::to_string(size) + " bytes at " +
                             std::to_string(offset) + " are outside a buffer of " +
                             std::to_string(buffer->size) + " bytes");
}

void record_copy(const DeviceApi& api, VkCommandBuffer commands, const pgr_buffer& dst,
                 uint64_t dst_offset, const pgr_buffer& src, uint64_t src_offset, uint64_t size) {
  if (size == 0) return;
  const VkBufferCopy region{src.memory->offset + src.offset + src_offset,
                            dst.memory->offset + dst.offset + dst_offset, size};
  api.vkCmdCopyBuffer(commands, src.memory->block->buffer, dst.memory->block->buffer, 1, &region);
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

}  // namespace plugrad::vulkan
