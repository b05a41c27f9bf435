// The parts of core that know of an interpreter around it: waiting for locks, and interruption.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "base/internal.h"
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
extern std::atomic<std::uint32_t (*)()> current_place;
}  // namespace detail

/// Calls the interruption check, which may throw; call it where a computation may be abandoned.
inline void poll_interruption() {
  if (void (*check)() = detail::interruption_check.load(std::memory_order_acquire)) [[unlikely]]
    check();
}
/// Whether there is a check, so that a long wait is worth dividing.
inline bool polls_interruption() {
  return detail::interruption_check.load(std::memory_order_acquire) != nullptr;
}

/// Whether operations have places (PlaceSource).
inline bool has_places() {
  return detail::current_place.load(std::memory_order_acquire) != nullptr;
}
/// The place that calls plugrad on this thread; 0: not known.
inline std::uint32_t current_place() {
  std::uint32_t (*const current)() = detail::current_place.load(std::memory_order_acquire);
  return current ? current() : 0;
}
/// Empty if the place is not known.
PLUGRAD_INTERNAL std::string describe_place(std::uint32_t place);

}  // namespace plugrad
