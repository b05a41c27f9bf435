// A range of device memory as the driver's objects.
#pragma once

#include "plugin.h"

namespace plugrad::opencl {

// One allocation. On a CPU it is memory of the host, which the driver uses in place.
struct Memory {
  pgr_device& device;
  cl_mem handle;
  uint64_t size;
  ~Memory();
};

// A memory, or a range of one with a handle of its own.
struct Range {
  std::shared_ptr<Memory> memory;  // nullptr: of size 0
  cl_mem handle = nullptr;
  uint64_t origin = 0, size = 0;  // within the memory
  std::mutex map_mutex;
  void* mapped = nullptr;
  uint32_t map_count = 0;

  ~Range();
};

}  // namespace plugrad::opencl

struct pgr_buffer {
  std::shared_ptr<plugrad::opencl::Range> range;  // graphs keep it too
};

namespace plugrad::opencl {

// Throws StatusError (INVALID_ARGUMENT) where the range is not inside the buffer, or the buffer
// NULL. `what` names it in the message.
void require_range(const Range* range, uint64_t offset, uint64_t size, const char* what);
inline Range* range_of(const pgr_buffer* buffer) {
  return buffer ? buffer->range.get() : nullptr;
}

struct CopyWork {
  std::shared_ptr<Range> dst, src;
  uint64_t dst_offset = 0, src_offset = 0, size = 0;
};
// Throws StatusError (INVALID_ARGUMENT) for a bad range, or two that overlap.
void check_copy(const CopyWork& copy);
void enqueue_copy(pgr_device& device, cl_command_queue queue, const CopyWork& copy);

}  // namespace plugrad::opencl
