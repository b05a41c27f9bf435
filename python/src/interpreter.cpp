// The interpreter's lock against plugrad's own, and Ctrl-C while plugrad computes.
#include <dlfcn.h>
#include <time.h>

#include "bind.h"
#include "plugrad/binding.h"

namespace plugrad::python {

namespace {

/// Whether this thread holds the interpreter's lock. The function is in every CPython, but not in
/// its stable ABI: without it plugrad's functions would only wait longer.
bool holds_lock() {
  using Check = int (*)();
  static const auto check = reinterpret_cast<Check>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check && PyGILState_GetThisThreadState() && check() != 0;
}

void* release_lock() {
  return Py_IsInitialized() && holds_lock() ? PyEval_SaveThread() : nullptr;
}

void acquire_lock(void* released) {
  PyEval_RestoreThread(static_cast<PyThreadState*>(released));
}

int64_t coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// Errors: the exception of a signal's handler, such as KeyboardInterrupt, on the main thread.
void check_signals() {
  constexpr int64_t kBetweenChecksMs = 50;  // chosen, not measured
  thread_local int64_t next_ms = 0;
  const int64_t now_ms = coarse_ms();
  if (now_ms < next_ms) return;
  next_ms = now_ms + kBetweenChecksMs;
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return;  // no thread of Python's
  const nb::gil_scoped_acquire acquired;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

}  // namespace

void bind_interpreter(nb::module_& module) {
  set_interpreter_lock({release_lock, acquire_lock});
  set_interruption_check(check_signals);
  // At exit no function of Python may run any more.
  module.def("_leave", [] {
    set_interruption_check(nullptr);
    set_interpreter_lock({});
  });
  nb::module_::import_("atexit").attr("register")(module.attr("_leave"));
}

}  // namespace plugrad::python
