// Says on stderr which call of a device has run for ten seconds, while it runs, and after two
// seconds how many kernels run for the first time, which their driver may compile then.
#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace plugrad::runtime {

class DeviceCalls;

/// A call of a plugin, from its begin to its end. Two uncontended locks; no clock is read.
class WatchedCall {
 public:
  /// The texts live as long as this.
  WatchedCall(const DeviceCalls& device, const char* call, std::string_view subject = {}) noexcept;
  ~WatchedCall();
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;

  /// The kernel of many that the call is at now; its name lives as long as this.
  void at(const std::string& kernel) { kernel_.store(&kernel, std::memory_order_release); }

 private:
  friend class CallWatch;
  std::string description() const;
  void add_progress(std::vector<std::string>& lines) const;

  const DeviceCalls& device_;
  const char* const call_;
  const std::string_view subject_;
  std::atomic<const std::string*> kernel_{nullptr};
  unsigned ticks_ = 0, forks_ = 0;
  WatchedCall *before_ = nullptr, *after_ = nullptr;
};

/// For tests: the time after which a call is said to hang, instead of ten seconds.
void report_calls_after(std::chrono::milliseconds time);

}  // namespace plugrad::runtime
