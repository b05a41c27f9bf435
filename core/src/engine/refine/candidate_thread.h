// The session's thread that makes other schedules of kernels, at low priority.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "engine/refine/background_work.h"
#include "tuning/helper/timing_helper.h"

namespace plugrad::engine {

/// Starts with its first request. A forked child has no such thread: there requests end at once.
class CandidateThread {
 public:
  /// `stop_it` must stop this thread; the runtime calls it before it destroys the devices.
  explicit CandidateThread(void (*stop_it)());

  /// Queues the work. If the thread cannot run, the work ends at once.
  void add(const std::shared_ptr<BackgroundWork>& work);
  void stop();
  bool is_stopped() const { return is_stopped_; }

  /// Called on this thread: the helper for the device and the current settings, started on first
  /// use; others are stopped.
  tuning::TimingHelper& helper(runtime::Device& device);

 private:
  void start();
  void run();
  void set_helper(std::unique_ptr<tuning::TimingHelper> next);

  void (*const stop_)();
  const pid_t pid_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::shared_ptr<BackgroundWork>> waiting_;
  std::unique_ptr<tuning::TimingHelper> helper_;  // changed by this thread only
  std::string environment_;                       // of the helper
  std::atomic<bool> is_stopped_{false};
  std::thread thread_;
};

}  // namespace plugrad::engine
