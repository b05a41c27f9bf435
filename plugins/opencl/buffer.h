// Ranges of device memory as OpenCL objects.
#pragma once

#include "plugin.h"

namespace plugrad::opencl {

// One allocation. On a CPU it is host memory that the driver uses in place.
struct Memory {
  pgr_device& device;
  cl_mem handle;
  uint64_t size;
  ~Memory();
};

// A whole allocation, or a sub-range with its own handle.
struct Range {
  std::shared_ptr<Memory> memory;  // nullptr: size 0
  cl_mem handle = nullptr;
  uint64_t origin = 0, size = 0;  // within the memory
  std::mutex map_mutex;
  void* mapped = nullptr;
  uint32_t map_count = 0;

  ~Range();
};

}  // namespace plugrad::opencl

struct pgr_buffer {
  std::shared_ptr<plugrad::opencl::Range> range;  // shared with graphs
};

namespace plugrad::opencl {

// Throws StatusError (INVALID_ARGUMENT) if the range is out of bounds or the buffer NULL. `what`
// names the range in the message.
void require_range(const Range* range, uint64_t offset, uint64_t size, const char* what);
inline Range* range_of(const pgr_buffer* buffer) {
  return buffer ? buffer->range.get() : nullptr;
}

struct CopyWork {
  std::shared_ptr<Range> dst, src;
  uint64_t dst_offset = 0, src_offset = 0, size = 0;
};
// Throws StatusError (INVALID_ARGUMENT) if a range is out of bounds or the two overlap.
void check_copy(const CopyWork& copy);
void enqueue_copy(pgr_device& device, cl_command_queue queue, const CopyWork& copy);

}  // namespace plugrad::opencl
