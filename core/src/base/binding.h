// The parts of core that know of an interpreter around it: waiting for locks, and interruption.
#pragma once

#include <atomic>
#include <mutex>

#include "plugrad/binding.h"

namespace plugrad {

/// A recursive mutex. A thread that must wait for it releases the interpreter's lock meanwhile.
class InterpreterAwareMutex {
 public:
  void lock() {
    if (!mutex_.try_lock()) [[unlikely]]
      wait();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

 private:
  void wait();
  std::recursive_mutex mutex_;
};

namespace detail {
extern std::atomic<void (*)()> interruption_check;
}

/// Calls the interruption check, which may throw; call it where a computation may be abandoned.
inline void poll_interruption() {
  if (void (*check)() = detail::interruption_check.load(std::memory_order_acquire)) [[unlikely]]
    check();
}
/// Whether there is a check, so that a long wait is worth dividing.
inline bool polls_interruption() {
  return detail::interruption_check.load(std::memory_order_acquire) != nullptr;
}

}  // namespace plugrad
