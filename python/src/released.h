// Work without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>

namespace plugrad::python {

/// While it lives, this thread does not hold the interpreter's lock. The interpreter ends only
/// when no thread is in here: CPython would end a thread that asks for the lock later by unwinding
/// C++ frames that cannot be unwound. From the interpreter's end on, a thread that comes here waits
/// for ever, as CPython's own threads do.
class Released {
 public:
  Released() : thread_(release()) {}
  ~Released() { acquire(thread_); }
  Released(const Released&) = delete;
  Released& operator=(const Released&) = delete;

  static PyThreadState* release();
  static void acquire(PyThreadState* thread);

 private:
  PyThreadState* thread_;
};

}  // namespace plugrad::python
