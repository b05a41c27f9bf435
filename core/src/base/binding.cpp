#include "base/binding.h"

#include "base/check.h"
#include "base/launch/forked_child.h"

namespace plugrad {

namespace {

std::atomic<bool> lock_is_lost{false};
std::atomic<void* (*)()> release_interpreter = nullptr;
std::atomic<void (*)(void*)> acquire_interpreter = nullptr;
std::atomic<std::string (*)(std::uint32_t)> describe_place_of_binding = nullptr;

}  // namespace

namespace detail {
PLUGRAD_INTERNAL std::atomic<void (*)()> interruption_check = nullptr;  // libplugrad_onnx polls it
std::atomic<std::uint32_t (*)()> current_place = nullptr;
}  // namespace detail

void set_interpreter_lock(const InterpreterLock& lock) {
  acquire_interpreter = lock.acquire;
  release_interpreter = lock.release;
}

void set_interruption_check(void (*check)()) {
  detail::interruption_check = check;
}

void set_place_source(const PlaceSource& source) {
  describe_place_of_binding = source.describe;
  detail::current_place = source.current;
}

std::string describe_place(std::uint32_t place) {
  std::string (*const describe)(std::uint32_t) = describe_place_of_binding;
  return describe && place != 0 ? describe(place) : std::string();
}

void lose_session_lock() {
  lock_is_lost = true;
}

void InterpreterAwareMutex::wait() {
  require(!lock_is_lost,
          "[fork] another thread used plugrad while this process was forked, and what it did is "
          "unfinished here: fork while no other thread uses plugrad, or start the child with exec");
  void* (*const release)() = release_interpreter;
  void* const released = release ? release() : nullptr;
  mutex_.lock();
  // Waiting here with the mutex is safe: who holds the interpreter's lock and wants the mutex
  // releases that lock above.
  if (released) acquire_interpreter.load()(released);
}

}  // namespace plugrad
