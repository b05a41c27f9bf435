// Copies between host and device on a second queue, so that they need not wait for earlier kernels
// on the in-order queue.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "plugrad/plugin_api/queue.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

/// Thread-safe.
class Transfers {
 public:
  explicit Transfers(DeviceState& device) : device_(device) {}

  /// Whether the device supports such copies. Creates the second queue on first use.
  bool can();

  /// Returns the copy's number for join(). `after`: the point at which the device stops using the
  /// memory; null: unused.
  std::uint64_t copy_in(pgr_buffer* dst, std::uint64_t dst_offset_bytes, const void* src,
                        std::uint64_t size_bytes, QueuePlace* after);
  /// Makes later work of the in-order queue wait for that copy.
  void join(std::uint64_t copied);
  /// Copies bytes that have been computed and that no work overwrites meanwhile.
  void copy_out(void* dst, pgr_buffer* src, std::uint64_t src_offset_bytes,
                std::uint64_t size_bytes);

  /// Waits up to the timeout for its copies, unless another thread uses the queue.
  void wait_quietly(std::uint64_t timeout_ns) noexcept;
  void shut_down() noexcept;

 private:
  DeviceState& device_;
  std::mutex mutex_;  // the queue takes one call at a time
  std::once_flag made_;
  pgr_queue* queue_ = nullptr;
  std::uint64_t copied_ = 0;
  std::atomic<std::uint64_t> joined_{0};
};

}  // namespace plugrad::runtime
