// Calls one device: turns exceptions and statuses of the plugin into errors that name the device.
// Refuses calls to a device that is lost, shut down or of a parent process.
#pragma once

#include <atomic>
#include <mutex>
#include <string>
#include <string_view>

#include "runtime/queue/call_watch.h"
#include "runtime/queue/in_flight.h"
#include "runtime/status.h"

namespace plugrad::runtime {

class DeviceCalls {
 public:
  explicit DeviceCalls(std::string device_name);
  DeviceCalls(const DeviceCalls&) = delete;
  DeviceCalls& operator=(const DeviceCalls&) = delete;

  const std::string& device_name() const { return name_; }

  /// Errors: User if the process was forked after the device was opened, and after shutdown; Device
  /// once it is lost.
  void require_usable(const char* call) const {
    if (gone_.load(std::memory_order_relaxed) != kThere || born_after_forks_ != fork_count)
        [[unlikely]]
      refuse(call);
  }
  /// Whether this process may call the plugin for the device, if only to destroy handles.
  bool is_reachable() const {
    return born_after_forks_ == fork_count && gone_.load(std::memory_order_relaxed) != kShutDown;
  }
  bool is_lost() const { return gone_.load(std::memory_order_relaxed) == kLost; }
  void mark_shut_down() { gone_ = kShutDown; }

  /// Calls f(error) -> status and throws unless it is OK. `subject`: the object of the call, e.g. a
  /// kernel's name. details(status) adds to the message of a failure.
  template <class F, class Details>
  void check(const char* call, std::string_view subject, const F& f, const Details& details) {
    const WatchedCall watched(*this, call, subject);
    CallError error;
    pgr_status status = PGR_STATUS_OK;
    try {
      status = f(error.get());
    } catch (...) {
      fail(call, subject, PGR_STATUS_INTERNAL, describe_escaped());
    }
    if (status != PGR_STATUS_OK) [[unlikely]]
      fail(call, subject, status, error.message() + details(status));
  }
  template <class F>
  void check(const char* call, std::string_view subject, const F& f) {
    check(call, subject, f, [](pgr_status) { return ""; });
  }
  template <class F>
  void check(const char* call, const F& f) {
    check(call, {}, f);
  }

  /// Throws for a status other than OK, and marks the device as lost if the status says so.
  [[noreturn]] void fail(const char* call, std::string_view subject, pgr_status status,
                         const std::string& said);

  /// For functions that cannot fail: logs the exceptions of a broken plugin.
  template <class F>
  void quietly(const char* call, const F& f) noexcept {
    const WatchedCall watched(*this, call);
    try {
      f();
    } catch (...) {
      log_escaped(call);
    }
  }

  /// The launches that an asynchronous device may not have finished.
  LaunchesInFlight& in_flight() { return in_flight_; }
  const LaunchesInFlight& in_flight() const { return in_flight_; }

  /// Number of forks between the process that loaded this code and this one.
  static unsigned fork_count;

 private:
  enum : unsigned char { kThere, kLost, kShutDown };

  [[noreturn]] void refuse(const char* call) const;
  [[noreturn]] void throw_lost(std::string_view call) const;
  std::string earlier_kernels(pgr_status status) const;
  void log_escaped(const char* call) noexcept;

  const std::string name_;
  const unsigned born_after_forks_;
  std::atomic<unsigned char> gone_{kThere};
  mutable std::mutex mutex_;
  std::string lost_because_;
  LaunchesInFlight in_flight_;
};

}  // namespace plugrad::runtime
