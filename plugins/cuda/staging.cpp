#include "staging.h"

#include <algorithm>
#include <cstring>

#include "plugin.h"

namespace plugrad::cuda {
namespace {

constexpr uint64_t kChunkBytes = uint64_t{1} << 20;

}  // namespace

Staging::~Staging() {
  sdk::guard(nullptr, [&] {
    const ContextScope scope(device_);
    for (Chunk& chunk : chunks_) {
      wait_for(chunk);
      if (chunk.data) device_.driver->free_host(chunk.data);
    }
  });
}

void Staging::prepare(Chunk& chunk) {
  if (!chunk.used) chunk.used = std::make_unique<Event>(device_);
  if (chunk.data) return;
  void* data = nullptr;
  check(device_, device_.driver->alloc_host(&data, kChunkBytes, kMemHostAllocPortable),
        "cuMemHostAlloc of pinned memory for copies");
  chunk.data = static_cast<char*>(data);
}

// The chunk's content is in use until the stream reaches this point.
void Staging::mark(Chunk& chunk, CUstream stream) {
  check(device_, device_.driver->event_record(chunk.used->handle(), stream), "cuEventRecord");
  chunk.is_in_use = true;
}

void Staging::wait_for(Chunk& chunk) {
  if (chunk.is_in_use)
    check(device_, device_.driver->event_synchronize(chunk.used->handle()), "a copy's end");
  chunk.is_in_use = false;
  chunk.filled = 0;
}

Staging::Chunk& Staging::chunk_with_room() {
  if (chunks_[current_].filled == kChunkBytes) {
    current_ = 1 - current_;
    wait_for(chunks_[current_]);
  }
  prepare(chunks_[current_]);
  return chunks_[current_];
}

void Staging::copy_in(CUstream stream, CUdeviceptr dst, const char* src, uint64_t size) {
  const std::lock_guard lock(mutex_);
  while (size > 0) {
    Chunk& chunk = chunk_with_room();
    const uint64_t part = std::min(size, kChunkBytes - chunk.filled);
    char* at = chunk.data + chunk.filled;
    std::memcpy(at, src, part);
    check(device_, device_.driver->copy_in(dst, at, part, stream), "cuMemcpyHtoDAsync");
    mark(chunk, stream);
    chunk.filled += part;
    dst += part;
    src += part;
    size -= part;
  }
}

// The stream is in order: its next write to a chunk follows its read from it.
void Staging::copy_out(CUstream stream, char* dst, CUdeviceptr src, uint64_t size) {
  const std::lock_guard lock(mutex_);
  char* to[2] = {};
  uint64_t bytes[2] = {};
  const auto take = [&](int which) {
    if (bytes[which] == 0) return;
    wait_for(chunks_[which]);
    std::memcpy(to[which], chunks_[which].data, bytes[which]);
    bytes[which] = 0;
  };
  for (int which = 0; size > 0; which = 1 - which) {
    take(which);
    prepare(chunks_[which]);
    const uint64_t part = std::min(size, kChunkBytes);
    check(device_, device_.driver->copy_out(chunks_[which].data, src, part, stream),
          "cuMemcpyDtoHAsync");
    mark(chunks_[which], stream);
    to[which] = dst;
    bytes[which] = part;
    dst += part;
    src += part;
    size -= part;
  }
  for (int which : {0, 1}) take(which);
}

}  // namespace plugrad::cuda
