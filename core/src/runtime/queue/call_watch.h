// Reports running device calls on stderr: a call after ten seconds, and after two seconds the
// number of kernels launched for the first time, which the driver may be compiling. Ends a process
// that a plugin ends by exit() with a failure.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/float_state.h"

namespace plugrad::runtime {

class DeviceCalls;

/// A call of a plugin during its lifetime, which leaves this thread's rounding and denormals as they
/// were. Costs two uncontended locks and no clock read.
class WatchedCall {
 public:
  /// The texts must outlive the object.
  WatchedCall(const DeviceCalls& device, const char* call, std::string_view subject = {}) noexcept;
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  /// The current kernel of a call with several; its name must outlive the object.
  void at(const std::string& kernel) { kernel_.store(&kernel, std::memory_order_release); }

 private:
  friend class CallWatch;
  std::string title() const;
  std::string description() const;
  void add_progress(std::vector<std::string>& lines) const;

  const FloatModeScope float_mode_;
  const pthread_t thread_ = pthread_self();
  const DeviceCalls& device_;
  const char* const call_;
  const std::string_view subject_;
  std::atomic<const std::string*> kernel_{nullptr};
  unsigned ticks_ = 0, forks_ = 0;
  WatchedCall *before_ = nullptr, *after_ = nullptr;
};

/// For tests: replaces the ten seconds after which a call is reported as hanging.
void report_calls_after(std::chrono::milliseconds time);

}  // namespace plugrad::runtime
