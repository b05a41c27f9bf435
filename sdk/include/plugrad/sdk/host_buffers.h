// SPDX-License-Identifier: Apache-2.0
// Implements "pgr.allocator" for devices that share the host's memory. A plugin derives its buffer
// type from HostBuffer: struct pgr_buffer : sdk::HostBuffer {};
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "plugrad/plugin_api/memory.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

// One allocation. Large ones use huge pages: page faults of small pages cost more than the kernel
// that fills them.
class HostMemory {
 public:
  // Throws StatusError (OUT_OF_MEMORY). Counts its size in `used_bytes` during its lifetime.
  HostMemory(const pgr_host_api& host, uint64_t size_bytes, uint64_t align_bytes, bool zero,
             std::atomic<uint64_t>& used_bytes);
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  char* data() const { return data_; }

 private:
  bool take(uint64_t align_bytes, bool zero);
  bool map(uint64_t align_bytes);

  const pgr_host_api& host_;
  std::atomic<uint64_t>& used_bytes_;
  uint64_t size_;
  char* data_ = nullptr;
  void* mapping_ = nullptr;  // set for huge pages
  uint64_t mapping_bytes_ = 0;
};

// An allocation or a sub-buffer; both keep the memory alive.
struct HostBuffer {
  std::shared_ptr<HostMemory> memory;
  char* data = nullptr;
  uint64_t size = 0;
};

// Allocates as `desc` specifies, aligned to at least `device_align_bytes`. Throws StatusError
// (INVALID_ARGUMENT, OUT_OF_MEMORY).
HostBuffer make_host_buffer(const pgr_host_api& host, const pgr_alloc_desc* desc,
                            uint32_t device_align_bytes, std::atomic<uint64_t>& used_bytes);

// A range of `parent`. Throws StatusError (INVALID_ARGUMENT) if it is out of bounds or not aligned.
HostBuffer make_sub_buffer(const HostBuffer* parent, uint64_t offset_bytes, uint64_t size_bytes,
                           uint32_t device_align_bytes);

// Throws StatusError (INVALID_ARGUMENT) if the buffer is NULL or the range out of bounds. `what`
// names the range in the message.
void require_range(const HostBuffer* buffer, uint64_t offset_bytes, uint64_t size_bytes,
                   const char* what);

// Repeats the pattern of a fill to 8 bytes. Throws StatusError (INVALID_ARGUMENT) unless the
// pattern has 1, 2, 4 or 8 bytes and `size_bytes` is a multiple of that.
uint64_t read_pattern(const void* pattern, uint64_t pattern_bytes, uint64_t size_bytes);

// Fills memory with the 8 bytes, repeated.
void write_pattern(char* to, uint64_t size_bytes, uint64_t eight_bytes);

}  // namespace plugrad::sdk
