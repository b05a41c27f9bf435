// The interpreter's lock against plugrad's own, Ctrl-C while plugrad computes, and the end of the
// interpreter.
#include <dlfcn.h>
#include <pthread.h>
#include <time.h>

#include <condition_variable>
#include <mutex>
#include <thread>

#include "bind.h"
#include "plugrad/binding.h"
#include "released.h"

namespace plugrad::python {

namespace {

/// Counts the threads that are without the lock, and keeps others out once the interpreter ends.
class Gate {
 public:
  static Gate& instance() {
    static auto* const one = new Gate;
    return *one;
  }
  /// In a forked child only the thread that forked goes on.
  static void watch_forks() {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] {
                     instance().inside_ = depth_;
                     instance().mutex_.unlock();
                   });
  }
  /// The caller does not hold the interpreter's lock, and no other lock either unless it is inside
  /// already, called back by work that is.
  void enter() {
    if (try_enter()) return;
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [] { return false; });
  }
  /// The same where the caller holds the interpreter's lock; false if it must wait without it.
  bool try_enter() {
    const std::lock_guard lock(mutex_);
    if (depth_ == 0 && is_closed_ && std::this_thread::get_id() != closer_) return false;
    ++depth_;
    ++inside_;
    return true;
  }
  void leave() {
    const std::lock_guard lock(mutex_);
    --depth_;
    if (--inside_ == 0) changed_.notify_all();
  }
  /// Waits until every other thread has left. The caller does not hold the interpreter's lock.
  void close() {
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    closer_ = std::this_thread::get_id();
    changed_.wait(lock, [&] { return inside_ == 0; });
  }
  bool must_stop() {
    const std::lock_guard lock(mutex_);
    return is_closed_ && std::this_thread::get_id() != closer_;
  }

 private:
  static inline thread_local int depth_ = 0;  // of this thread
  std::mutex mutex_;
  std::condition_variable changed_;
  int inside_ = 0;
  bool is_closed_ = false;
  std::thread::id closer_;
};

/// Whether this thread holds the interpreter's lock. The function is in every CPython, but not in
/// its stable ABI: without it plugrad's functions would only wait longer.
bool holds_lock() {
  using Check = int (*)();
  static const auto check = reinterpret_cast<Check>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return check && PyGILState_GetThisThreadState() && check() != 0;
}

void* release_lock() {
  return Py_IsInitialized() && holds_lock() ? Released::release() : nullptr;
}

void acquire_lock(void* released) {
  Released::acquire(static_cast<PyThreadState*>(released));
}

int64_t coarse_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1'000'000;
}

/// Errors: the exception of a signal's handler, such as KeyboardInterrupt, on the main thread;
/// SystemExit, which ends a thread silently, on others when the interpreter ends.
void check_signals() {
  constexpr int64_t kBetweenChecksMs = 50;  // chosen, not measured
  thread_local int64_t next_ms = 0;
  const int64_t now_ms = coarse_ms();
  if (now_ms < next_ms) return;
  next_ms = now_ms + kBetweenChecksMs;
  if (!Py_IsInitialized() || !PyGILState_GetThisThreadState()) return;  // no thread of Python's
  const nb::gil_scoped_acquire acquired;
  if (Gate::instance().must_stop()) PyErr_SetNone(PyExc_SystemExit);
  if (PyErr_Occurred() || PyErr_CheckSignals() != 0) throw nb::python_error();
}

/// At the interpreter's end: no function of Python may run on another thread any more.
void leave() {
  PyThreadState* const thread = PyEval_SaveThread();
  Gate::instance().close();
  PyEval_RestoreThread(thread);
  set_interruption_check(nullptr);
  set_interpreter_lock({});
  set_place_source({});
}

}  // namespace

PyThreadState* Released::release() {
  PyThreadState* const thread = PyEval_SaveThread();
  Gate::instance().enter();
  return thread;
}

void Released::acquire(PyThreadState* thread) {
  PyEval_RestoreThread(thread);
  Gate::instance().leave();
}

CalledBack::CalledBack() {
  if (Gate::instance().try_enter()) return;
  PyEval_SaveThread();
  Gate::instance().enter();  // never returns
}

CalledBack::~CalledBack() {
  Gate::instance().leave();
}

void bind_interpreter(nb::module_& module) {
  Gate::watch_forks();
  set_interpreter_lock({release_lock, acquire_lock});
  set_interruption_check(check_signals);
  module.def("_leave", leave);
  nb::module_::import_("atexit").attr("register")(module.attr("_leave"));
}

}  // namespace plugrad::python
