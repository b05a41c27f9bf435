// SPDX-License-Identifier: Apache-2.0
// Buffers of a device whose memory is the host's: what the functions of its "pgr.allocator" are
// made of. A plugin's own type derives from HostBuffer: struct pgr_buffer : sdk::HostBuffer {};
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "plugrad/plugin_api/memory.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::sdk {

// One allocation. Large ones stand on huge pages: a first touch of small pages costs more than the
// kernel that fills them.
class HostMemory {
 public:
  // Throws StatusError (OUT_OF_MEMORY). Adds its size to `used_bytes` as long as it lives.
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
  void* mapping_ = nullptr;  // of huge pages
  uint64_t mapping_bytes_ = 0;
};

// A buffer or a range of one; both keep the memory.
struct HostBuffer {
  std::shared_ptr<HostMemory> memory;
  char* data = nullptr;
  uint64_t size = 0;
};

// As `desc` asks, at least `device_align_bytes` aligned. Throws StatusError (INVALID_ARGUMENT,
// OUT_OF_MEMORY).
HostBuffer make_host_buffer(const pgr_host_api& host, const pgr_alloc_desc* desc,
                            uint32_t device_align_bytes, std::atomic<uint64_t>& used_bytes);

// The range of `parent`. Throws StatusError (INVALID_ARGUMENT) where it is none, or not aligned.
HostBuffer make_sub_buffer(const HostBuffer* parent, uint64_t offset_bytes, uint64_t size_bytes,
                           uint32_t device_align_bytes);

// Throws StatusError (INVALID_ARGUMENT) where the range is not inside the buffer, or the buffer
// NULL. `what` names it in the message.
void require_range(const HostBuffer* buffer, uint64_t offset_bytes, uint64_t size_bytes,
                   const char* what);

// The pattern of a fill repeated to 8 bytes. Throws StatusError (INVALID_ARGUMENT) for a pattern of
// another length than 1, 2, 4 or 8 bytes, or of which `size_bytes` is no multiple.
uint64_t read_pattern(const void* pattern, uint64_t pattern_bytes, uint64_t size_bytes);

// Writes the 8 bytes over and over.
void write_pattern(char* to, uint64_t size_bytes, uint64_t eight_bytes);

}  // namespace plugrad::sdk
