// An in-order stream of work: command buffers are recorded, submitted in batches, and counted by
// one timeline semaphore. Work n is done when the semaphore has reached n.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "memory.h"

struct pgr_device;

namespace plugrad::vulkan {

// A queue of the device; several streams may share it.
struct HardwareQueue {
  VkQueue handle = VK_NULL_HANDLE;
  std::mutex mutex;
};

// Thread-safe; work from several threads is ordered by the calls.
class Stream {
 public:
  Stream(pgr_device& device, HardwareQueue& queue);
  ~Stream();  // the work must be done
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  // Records `body` as work that starts after all earlier work and sees its writes. Returns its
  // number.
  uint64_t record(const std::function<void(VkCommandBuffer)>& body);
  // A kernel launch, recorded like `record` but without a function object.
  struct Dispatch {
    VkPipeline pipeline;
    const void* slots;  // 128 bytes
    uint32_t groups[3];
  };
  void dispatch(const Dispatch& dispatch);
  // Submits command buffers, which begin with their own barrier, after all earlier work. Returns
  // their number.
  uint64_t submit(std::span<const VkCommandBuffer> recorded);

  // Makes later work start after work `value` of another stream.
  void wait_for(Stream& other, uint64_t value);

  // The number of the last work, submitted or not.
  uint64_t last() const { return last_.load(); }
  bool reached(uint64_t value);
  void flush();
  // Submits, and waits for work `value`. Returns false after `timeout_ns`.
  bool wait(uint64_t value, uint64_t timeout_ns = UINT64_MAX);
  void finish() { wait(last()); }
  bool is_idle() { return reached(last()); }

  // `bytes` of memory that the next work reads; the host writes it immediately. Not thread-safe:
  // launches of one stream must be serialised.
  MemoryRange arguments(uint64_t bytes);

 private:
  VkCommandBuffer open();
  void submit_open(std::span<const VkCommandBuffer> recorded);
  void count_command();

  pgr_device& device_;
  HardwareQueue& queue_;
  std::mutex mutex_;
  VkSemaphore semaphore_ = VK_NULL_HANDLE;
  VkCommandPool pool_ = VK_NULL_HANDLE;
  std::vector<VkCommandBuffer> free_;
  std::deque<std::pair<VkCommandBuffer, uint64_t>> in_flight_;
  VkCommandBuffer open_ = VK_NULL_HANDLE;
  VkPipeline bound_ = VK_NULL_HANDLE;  // pipeline of the open command buffer
  uint32_t commands_ = 0;              // in the open command buffer
  std::atomic<uint64_t> last_{0};
  std::atomic<uint64_t> submitted_{0}, done_{0};
  std::vector<std::pair<VkSemaphore, uint64_t>> waits_;  // of the next submission
  MemoryRange arguments_;                                // the chunk in use
  uint64_t arguments_used_ = 0;
};

// Barriers before work that reads all earlier results, and after work whose results the host reads.
void barrier(const DeviceApi& api, VkCommandBuffer commands);
void barrier_to_host(const DeviceApi& api, VkCommandBuffer commands);

}  // namespace plugrad::vulkan
