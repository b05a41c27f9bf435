// Runs work in order on a separate thread, asynchronously to the caller. The NULL queue is the
// calling thread, or a thread if the device was opened without synchrony.
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
  // Memory and kernels kept alive until the work is done.
  std::vector<std::shared_ptr<const void>> holds;
};

class WorkQueue {
 public:
  WorkQueue();
  ~WorkQueue();  // waits for the work
  WorkQueue(const WorkQueue&) = delete;
  WorkQueue& operator=(const WorkQueue&) = delete;

  void submit(Work work);
  // Waits for all work; throws and clears the first failure since the last call.
  void finish();
  // Waits for the work that uses `held`.
  void wait_for(const void* held);
  // The failure that finish would throw.
  std::optional<sdk::StatusError> failure();

 private:
  void run_all();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> pending_;  // the front one is running
  std::optional<sdk::StatusError> failure_;
  bool is_ending_ = false;
  std::thread thread_;
};

// The queue of the handle; nullptr: the calling thread, synchronously.
WorkQueue* work_queue_of(pgr_device& device, pgr_queue* queue);
void submit(pgr_device& device, pgr_queue* queue, Work work);

// Waits for the work that uses `held`, on every queue of the device.
void wait_for(pgr_device& device, const void* held);

// Waits for all work of the device, and throws the first failure.
void finish_all(pgr_device& device);

// A checked launch with all of its arguments, ready to be queued.
struct LaunchWork {
  std::shared_ptr<const sdk::Interpreter> kernel;
  std::vector<sdk::HostBuffer> buffers;
  std::vector<uint64_t> scalars;
  std::array<uint64_t, 3> group_count{};
  std::array<uint32_t, 3> local_size{};
};
// Throws StatusError: INVALID_ARGUMENT if the arguments do not fit the kernel, LIMIT_EXCEEDED if
// they exceed the device's limits.
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
