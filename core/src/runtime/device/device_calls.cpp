#include "runtime/device/device_calls.h"

#include <pthread.h>

#include "base/check.h"
#include "base/log.h"

namespace plugrad::runtime {
namespace {

unsigned watch_forks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++DeviceCalls::fork_count; });
  (void)registered;
  return DeviceCalls::fork_count;
}

std::string with_subject(std::string_view call, std::string_view subject) {
  return subject.empty() ? std::string(call) : fmt::format("{} {}", call, subject);
}

}  // namespace

unsigned DeviceCalls::fork_count = 0;

DeviceCalls::DeviceCalls(std::string device_name)
    : name_(std::move(device_name)), born_after_forks_(watch_forks()) {}

void DeviceCalls::refuse(const char* call) const {
  if (born_after_forks_ != fork_count)
    plugrad::fail(
        ErrorKind::User,
        "[fork] {} was opened before this process was forked, and a device does not survive "
        "that: use plugrad in the child only, or start the child with exec",
        name_);
  if (gone_ == kShutDown)
    plugrad::fail(ErrorKind::User,
                  "[{}] {} was shut down, and what was on it is gone: read results before "
                  "shutdown()",
                  call, name_);
  throw_lost(call);
}

void DeviceCalls::throw_lost(std::string_view call) const {
  std::lock_guard lock(mutex_);
  plugrad::fail(ErrorKind::Device,
                "[{}] {} is lost since {}. Tensors on it are gone, those of other devices are not: "
                "go on with another device (DEV, Tensor::to), or start the program again",
                call, name_, lost_because_);
}

// Describes earlier work that may have caused a failure with this status; empty if it cannot.
std::string DeviceCalls::earlier_kernels(pgr_status status) const {
  switch (status) {
    case PGR_STATUS_INVALID_ARGUMENT:
    case PGR_STATUS_UNSUPPORTED:
    case PGR_STATUS_OUT_OF_MEMORY:
    case PGR_STATUS_COMPILE_FAILED:
    case PGR_STATUS_BAD_BINARY:
    case PGR_STATUS_LIMIT_EXCEEDED:
      return "";
    default:
      break;
  }
  const std::string names = in_flight_.names();
  return names.empty()
             ? ""
             : "; an earlier kernel may be what failed, launched since the last wait: " + names;
}

void DeviceCalls::fail(const char* call, std::string_view subject, pgr_status status,
                       const std::string& plugin_said) {
  const std::string said = plugin_said + earlier_kernels(status);
  const std::string what = with_subject(call, subject);
  if (status != PGR_STATUS_DEVICE_LOST) throw_status(name_, what, status, said);
  {
    std::lock_guard lock(mutex_);
    unsigned char there = kThere;
    if (gone_.compare_exchange_strong(there, kLost))
      lost_because_ =
          fmt::format("\"{}\"{}{} ({})", what, said.empty() ? "" : ": ", said, status_name(status));
  }
  throw_lost(what);
}

void DeviceCalls::log_escaped(const char* call) noexcept {
  try {
    log_line(LogLevel::Error, fmt::format("[{}] {}: {}", call, name_, describe_escaped()));
  } catch (...) {  // no memory for a message
  }
}

}  // namespace plugrad::runtime
