// Work without the interpreter's lock, and code of Python inside of C++.
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

/// While it lives, this thread holds the interpreter's lock, for code of Python that C++ calls. The
/// interpreter does not end meanwhile: the code may let another thread have the lock and ask for it
/// again, with frames of C++ below it.
class CalledBack {
 public:
  CalledBack();
  ~CalledBack();
  CalledBack(const CalledBack&) = delete;
  CalledBack& operator=(const CalledBack&) = delete;

 private:
  nanobind::gil_scoped_acquire acquired_;
};

}  // namespace plugrad::python
