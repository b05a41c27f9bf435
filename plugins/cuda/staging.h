// Pinned host memory for the copies of one queue: a call returns when the caller's memory may be
// reused, while the device still copies.
#pragma once

#include <memory>
#include <mutex>

#include "clock.h"
#include "driver.h"

namespace plugrad::cuda {

class Staging {
 public:
  explicit Staging(pgr_device& device) : device_(device) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // Returns when `src` has been read.
  void copy_in(CUstream stream, CUdeviceptr dst, const char* src, uint64_t size);
  // Returns when `dst` has been written.
  void copy_out(CUstream stream, char* dst, CUdeviceptr src, uint64_t size);

 private:
  // Double buffering: one chunk is filled while the other is copied.
  struct Chunk {
    char* data = nullptr;
    std::unique_ptr<Event> used;
    uint64_t filled = 0;
    bool is_in_use = false;
  };
  void prepare(Chunk& chunk);
  void mark(Chunk& chunk, CUstream stream);
  void wait_for(Chunk& chunk);
  Chunk& chunk_with_room();

  pgr_device& device_;
  std::mutex mutex_;  // the device's default queue is used by several threads
  Chunk chunks_[2];
  int current_ = 0;
};

}  // namespace plugrad::cuda
