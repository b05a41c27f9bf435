// Copies between host and device beside the device's in-order queue, on a queue of their own: they
// need not wait for the kernels that were given before.
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

  /// Whether copies can go beside the in-order queue. Makes the second queue when first asked.
  bool can();

  /// What was copied, for join(). `after`: where the device stops to use the memory; null: nothing
  /// uses it.
  std::uint64_t copy_in(pgr_buffer* dst, std::uint64_t dst_offset_bytes, const void* src,
                        std::uint64_t size_bytes, QueuePlace* after);
  /// Later work of the in-order queue starts after that copy.
  void join(std::uint64_t copied);
  /// Of bytes that are there already, and that nothing writes meanwhile.
  void copy_out(void* dst, pgr_buffer* src, std::uint64_t src_offset_bytes,
                std::uint64_t size_bytes);

  /// Waits at most so long for its copies, unless another thread uses it.
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
