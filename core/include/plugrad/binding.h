/// Hooks for bindings of other languages. A program in C++ needs none of them.
#pragma once

#include <cstdint>
#include <string>

#include "plugrad/export.h"

namespace plugrad {

/// A lock of the language's interpreter, which functions called back by plugrad take.
struct InterpreterLock {
  /// Releases the lock and returns what `acquire` needs; null if this thread does not hold it.
  void* (*release)();
  void (*acquire)(void* released);
};
/// A thread that waits for one of plugrad's locks releases the interpreter's meanwhile, so that the
/// two cannot deadlock. Call it before other threads use plugrad.
PLUGRAD_API void set_interpreter_lock(const InterpreterLock& lock);

/// `check` is called often while kernels are made, searched for, started and waited for, on the
/// thread that asked for it. It may throw: the exception leaves the function that computes, and
/// every tensor keeps its state. Null: no check.
PLUGRAD_API void set_interruption_check(void (*check)());

/// Lines of the language's program, for errors of operations that fail when they are computed.
struct PlaceSource {
  /// The number of the line that calls plugrad on this thread; 0: not known. Called for each
  /// operation that is recorded.
  std::uint32_t (*current)();
  /// Such as "train.py:31, in step"; empty if it is no longer known. Called on any thread.
  std::string (*describe)(std::uint32_t place);
};
/// From now on Error::recorded_at() names the lines that recorded a failing operation.
PLUGRAD_API void set_place_source(const PlaceSource& source);

}  // namespace plugrad
