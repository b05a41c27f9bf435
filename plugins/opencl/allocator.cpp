// Buffers are the driver's memory objects. On a CPU they use host memory allocated here, which the
// driver accesses in place: aligned as requested, on huge pages, and mapped without a copy.
#include <cstring>

#include "buffer.h"

plugrad::opencl::Memory::~Memory() {
  api().clReleaseMemObject(handle);
  device.used_bytes -= size;
}

plugrad::opencl::Range::~Range() {
  if (memory && handle != memory->handle) api().clReleaseMemObject(handle);
}

namespace plugrad::opencl {
namespace {

// Smaller writes are copied to a staging buffer, so that the caller need not wait for the queue.
constexpr uint64_t kMostStagedBytes = 256 * 1024;

std::atomic<uint64_t> host_bytes_not_counted{0};

cl_mem make_on_host_memory(pgr_device& device, uint64_t size, uint64_t align, bool zero) {
  auto memory = std::make_unique<sdk::HostMemory>(*device.plugin->host, size, align, zero,
                                                  host_bytes_not_counted);
  cl_int code = CL_SUCCESS;
  const cl_mem handle = api().clCreateBuffer(
      device.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, memory->data(), &code);
  device.check(code, "cannot allocate " + std::to_string(size) + " bytes");
  // Queued work may use the memory after the buffer is freed.
  code = api().clSetMemObjectDestructorCallback(
      handle, [](cl_mem, void* owned) { delete static_cast<sdk::HostMemory*>(owned); },
      memory.get());
  if (code != CL_SUCCESS) api().clReleaseMemObject(handle);
  device.check(code, "clSetMemObjectDestructorCallback");
  memory.release();
  return handle;
}

void fill_bytes(pgr_device& device, cl_command_queue queue, const Range& dst, uint64_t offset,
                uint64_t size, uint64_t pattern, uint64_t pattern_bytes);

cl_mem make_on_device(pgr_device& device, uint64_t size, uint64_t align) {
  sdk::require(align <= device.facts.base_align_bytes, PGR_STATUS_LIMIT_EXCEEDED,
               "alignment " + std::to_string(align) + "; buffers of " + device.facts.name +
                   " are aligned to " + std::to_string(device.facts.base_align_bytes));
  cl_int code = CL_SUCCESS;
  const cl_mem handle =
      api().clCreateBuffer(device.context, CL_MEM_READ_WRITE, size, nullptr, &code);
  device.check(code, "cannot allocate " + std::to_string(size) + " bytes");
  return handle;
}

std::shared_ptr<Range> make_range(pgr_device& device, const pgr_alloc_desc& desc) {
  const uint64_t asked = desc.align_bytes ? desc.align_bytes : 1;
  sdk::require((asked & (asked - 1)) == 0, PGR_STATUS_INVALID_ARGUMENT,
               "alignment " + std::to_string(desc.align_bytes) + " is no power of two");
  auto buffer = std::make_shared<Range>();
  if (desc.size_bytes == 0) return buffer;
  const uint64_t align = std::max<uint64_t>(asked, device.facts.base_align_bytes);
  sdk::require(desc.size_bytes <= device.facts.max_buffer_bytes, PGR_STATUS_OUT_OF_MEMORY,
               std::to_string(desc.size_bytes) + " bytes; buffers of " + device.facts.name +
                   " have up to " + std::to_string(device.facts.max_buffer_bytes));
  const bool zero = (desc.flags & PGR_ALLOC_ZERO) != 0;
  buffer->size = desc.size_bytes;
  buffer->handle = device.facts.is_cpu ? make_on_host_memory(device, desc.size_bytes, align, zero)
                                       : make_on_device(device, desc.size_bytes, align);
  device.used_bytes += desc.size_bytes;
  buffer->memory.reset(new Memory{device, buffer->handle, desc.size_bytes});
  if (zero && !device.facts.is_cpu) {
    fill_bytes(device, device.queue, *buffer, 0, desc.size_bytes, 0, 1);
    device.check(api().clFinish(device.queue), "clFinish");
  }
  return buffer;
}

pgr_status alloc(pgr_device* device, const pgr_alloc_desc* desc, pgr_buffer** out,
                 pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = new pgr_buffer{make_range(*device, sdk::read(desc))};
  });
}

void free_buffer(pgr_device*, pgr_buffer* buffer) {
  delete buffer;
}

// Queues a write from a copy of the bytes, which is freed when the write completes.
void write_staged(pgr_device& device, cl_command_queue queue, const Range& dst, uint64_t offset,
                  const void* src, uint64_t size) {
  auto bytes = std::make_unique<char[]>(size);
  std::memcpy(bytes.get(), src, size);
  cl_event event = nullptr;
  device.check(api().clEnqueueWriteBuffer(queue, dst.handle, CL_FALSE, offset, size, bytes.get(), 0,
                                          nullptr, &event),
               "clEnqueueWriteBuffer");
  const cl_int code = api().clSetEventCallback(
      event, CL_COMPLETE, [](cl_event, cl_int, void* owned) { delete[] static_cast<char*>(owned); },
      bytes.get());
  if (code != CL_SUCCESS)
    api().clWaitForEvents(1, &event);
  else
    bytes.release();
  api().clReleaseEvent(event);
}

pgr_status copy_in(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                   const void* src, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(range_of(dst), offset, size, "dst");
    sdk::require(src || size == 0, PGR_STATUS_INVALID_ARGUMENT, "src is NULL");
    if (size == 0) return;
    device->bytes_copied += size;
    const cl_command_queue on = queue_of(*device, queue);
    if (size <= kMostStagedBytes) return write_staged(*device, on, *dst->range, offset, src, size);
    device->check(api().clEnqueueWriteBuffer(on, dst->range->handle, CL_TRUE, offset, size, src, 0,
                                             nullptr, nullptr),
                  "clEnqueueWriteBuffer");
  });
}

pgr_status copy_out(pgr_device* device, pgr_queue* queue, void* dst, pgr_buffer* src,
                    uint64_t offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(range_of(src), offset, size, "src");
    sdk::require(dst || size == 0, PGR_STATUS_INVALID_ARGUMENT, "dst is NULL");
    if (size == 0) return;
    device->bytes_copied += size;
    device->check(api().clEnqueueReadBuffer(queue_of(*device, queue), src->range->handle, CL_TRUE,
                                            offset, size, dst, 0, nullptr, nullptr),
                  "clEnqueueReadBuffer");
  });
}

pgr_status copy(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t dst_offset,
                pgr_buffer* src, uint64_t src_offset, uint64_t size, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(dst && src, PGR_STATUS_INVALID_ARGUMENT, "copy: dst or src is NULL");
    const CopyWork work{dst->range, src->range, dst_offset, src_offset, size};
    check_copy(work);
    enqueue_copy(*device, queue_of(*device, queue), work);
  });
}

void fill_bytes(pgr_device& device, cl_command_queue queue, const Range& dst, uint64_t offset,
                uint64_t size, uint64_t pattern, uint64_t pattern_bytes) {
  device.check(api().clEnqueueFillBuffer(queue, dst.handle, &pattern, pattern_bytes, offset, size,
                                         0, nullptr, nullptr),
               "clEnqueueFillBuffer");
}

// The shortest period of the pattern.
uint64_t period_of(uint64_t eight, uint64_t pattern_bytes) {
  for (uint64_t bytes = 1; bytes < pattern_bytes; bytes *= 2) {
    const uint64_t low = eight & (~uint64_t{0} >> (64 - 8 * bytes));
    bool repeats = true;
    for (uint64_t at = 0; at < 8; at += bytes)
      repeats = repeats && ((eight >> (8 * at)) & (~uint64_t{0} >> (64 - 8 * bytes))) == low;
    if (repeats) return bytes;
  }
  return pattern_bytes;
}

pgr_status fill(pgr_device* device, pgr_queue* queue, pgr_buffer* dst, uint64_t offset,
                uint64_t size, const void* pattern, uint64_t pattern_bytes, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_range(range_of(dst), offset, size, "dst");
    const uint64_t eight = sdk::read_pattern(pattern, pattern_bytes, size);
    if (size == 0) return;
    const cl_command_queue on = queue_of(*device, queue);
    const uint64_t period = period_of(eight, pattern_bytes);
    if (offset % period == 0)
      return fill_bytes(*device, on, *dst->range, offset, size, eight, period);
    // OpenCL requires the offset to be a multiple of the pattern's size.
    std::string bytes(size + 8, '\0');
    sdk::write_pattern(bytes.data(), size, eight);
    write_staged(*device, on, *dst->range, offset, bytes.data(), size);
  });
}

pgr_status map(pgr_device* device, pgr_buffer* buffer, void** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr && out != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "map: buffer or out is NULL");
    finish_all(*device);
    Range& range = *buffer->range;
    const std::lock_guard lock(range.map_mutex);
    if (range.map_count == 0 && range.size > 0) {
      cl_int code = CL_SUCCESS;
      void* address =
          api().clEnqueueMapBuffer(device->queue, range.handle, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                   0, range.size, 0, nullptr, nullptr, &code);
      device->check(code, "clEnqueueMapBuffer");
      range.mapped = address;
    }
    ++range.map_count;
    *out = range.mapped;
  });
}

pgr_status unmap(pgr_device* device, pgr_buffer* buffer, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(buffer != nullptr, PGR_STATUS_INVALID_ARGUMENT, "unmap: buffer is NULL");
    Range& range = *buffer->range;
    const std::lock_guard lock(range.map_mutex);
    if (range.map_count == 0 || --range.map_count > 0 || !range.mapped) return;
    void* address = std::exchange(range.mapped, nullptr);
    device->check(
        api().clEnqueueUnmapMemObject(device->queue, range.handle, address, 0, nullptr, nullptr),
        "clEnqueueUnmapMemObject");
    device->check(api().clFinish(device->queue), "clFinish");
  });
}

pgr_status sub_buffer(pgr_device* device, pgr_buffer* parent, uint64_t offset, uint64_t size,
                      pgr_buffer** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    require_range(range_of(parent), offset, size, "sub_buffer: parent");
    const uint32_t align = device->facts.base_align_bytes;
    sdk::require(offset % align == 0, PGR_STATUS_INVALID_ARGUMENT,
                 "sub_buffer: offset " + std::to_string(offset) + " is no multiple of " +
                     std::to_string(align));
    auto buffer = std::make_shared<Range>();
    if (size > 0) {
      const cl_buffer_region region{parent->range->origin + offset, size};
      cl_int code = CL_SUCCESS;
      buffer->handle = api().clCreateSubBuffer(parent->range->memory->handle, CL_MEM_READ_WRITE,
                                               CL_BUFFER_CREATE_TYPE_REGION, &region, &code);
      device->check(code, "clCreateSubBuffer");
      buffer->memory = parent->range->memory;
      buffer->origin = region.origin;
      buffer->size = size;
    }
    *out = new pgr_buffer{std::move(buffer)};
  });
}

}  // namespace

void require_range(const Range* range, uint64_t offset, uint64_t size, const char* what) {
  if (range && offset <= range->size && size <= range->size - offset) return;
  sdk::require(range != nullptr, PGR_STATUS_INVALID_ARGUMENT, std::string(what) + " is NULL");
  throw sdk::StatusError(PGR_STATUS_INVALID_ARGUMENT,
                         std::string(what) + ": " + std::to_string(size) + " bytes at " +
                             std::to_string(offset) + " of a buffer of " +
                             std::to_string(range->size));
}

void check_copy(const CopyWork& copy) {
  require_range(copy.dst.get(), copy.dst_offset, copy.size, "dst");
  require_range(copy.src.get(), copy.src_offset, copy.size, "src");
  const uint64_t to = copy.dst->origin + copy.dst_offset, from = copy.src->origin + copy.src_offset;
  const bool overlaps = copy.size > 0 && copy.dst->memory == copy.src->memory &&
                        to < from + copy.size && from < to + copy.size;
  sdk::require(!overlaps, PGR_STATUS_INVALID_ARGUMENT, "copy: the ranges overlap");
}

void enqueue_copy(pgr_device& device, cl_command_queue queue, const CopyWork& copy) {
  if (copy.size == 0) return;
  device.bytes_copied += copy.size;
  device.check(api().clEnqueueCopyBuffer(queue, copy.src->handle, copy.dst->handle, copy.src_offset,
                                         copy.dst_offset, copy.size, 0, nullptr, nullptr),
               "clEnqueueCopyBuffer");
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

}  // namespace plugrad::opencl
