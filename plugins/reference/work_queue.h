// Work in order on a thread of its own. Who queues work goes on at once; the NULL queue is the
// calling thread itself, or a thread too where the device was opened without synchrony.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "plugin.h"
#include "plugrad/sdk/guard.h"

struct pgr_queue {
  std::shared_ptr<plugrad::reference::WorkQueue> work;
};

namespace plugrad::reference {

struct Work {
  std::function<void()> run;
  // Memory and kernels that live until the work is done, whoever frees them before.
  std::vector<std::shared_ptr<const void>> holds;
};

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // waits for the work
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void submit(Work work);
  // Waits for all work; throws the first failure since the last call, which is then forgotten.
  void finish();
  // Waits for the work that holds this.
  void wait_for(const void* held);
  // The failure that finish would throw.
  std::optional<sdk::StatusError> failure();

 private:
  void run_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> pending_;  // the front one runs
  std::optional<sdk::StatusError> failure_;
  bool is_ending_ = false;
  std::thread thread_;
};

// What works for the handle; null: the calling thread, at once.
WorkQueue* work_queue_of(pgr_device& device, pgr_queue* queue);
void submit(pgr_device& device, pgr_queue* queue, Work work);

// Waits for the work that holds this, on any queue of the device.
void wait_for(pgr_device& device, const void* held);

// Waits for all work of the device, and throws the first failure.
void finish_all(pgr_device& device);

// A kernel's launch as it is queued: checked, with everything it needs.
struct LaunchWork {
  std::shared_ptr<const sdk::Interpreter> kernel;
  std::vector<sdk::HostBuffer> buffers;
  std::vector<uint64_t> scalars;
  std::array<uint64_t, 3> group_count{};
  std::array<uint32_t, 3> local_size{};
};
// Throws StatusError: INVALID_ARGUMENT where the arguments do not fit the kernel, LIMIT_EXCEEDED
// where they do not fit the device.
LaunchWork read_launch(const pgr_device& device, const pgr_kernel* kernel,
                       const pgr_launch_desc* desc);
void check_launch(const LaunchWork& launch);
// `out_time_ns` may be NULL.
Work make_work(pgr_device& device, LaunchWork launch, uint64_t* out_time_ns);

// A copy within the device.
struct CopyWork {
  sdk::HostBuffer dst, src;
  uint64_t dst_offset = 0, src_offset = 0, size = 0;
};
void check_copy(const CopyWork& copy);
Work make_work(pgr_device& device, CopyWork copy);

}  // namespace plugrad::reference
