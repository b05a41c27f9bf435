// The process's only thread pool. Kernels use it through the ABI's parallel_for, compilation
// through run_tasks.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/settings.h"

namespace plugrad {

/// Works on [begin, end). `worker` is less than the call's thread count; 0 is the caller. Must not
/// throw.
using SpanFunction = void (*)(void* context, std::uint64_t begin, std::uint64_t end,
                              std::uint32_t worker);

/// Runs one job at a time. The caller works too and takes spans that late workers have not begun,
/// so it never waits for an unscheduled thread. Idle workers spin for 100 us and then sleep. A call
/// inside a job, or during another thread's job, runs on its caller alone.
class ThreadPool {
 public:
  static constexpr std::uint32_t kMaxThreads = 256;

  ThreadPool();
  ~ThreadPool();  // joins its threads; no job may be running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  /// Splits [0, count) into consecutive spans of at least `min_span` (0 means 1) and returns when
  /// all have run. `threads` limits the participants, including the caller. Creates threads on
  /// demand.
  void parallel_for(std::uint64_t count, std::uint64_t min_span, std::uint32_t threads,
                    SpanFunction function, void* context);

  /// Runs task(i) for each i in [0, count), each on the next free thread: for few long tasks of
  /// uneven length. Rethrows the first exception after all tasks have ended.
  void run_tasks(std::uint64_t count, std::uint32_t threads,
                 const std::function<void(std::uint64_t)>& task);

 private:
  // Spans that a participant takes in order; others steal from it when their own are used up.
  struct alignas(64) Slot {
    std::atomic<std::uint64_t> next{0};
    std::uint64_t end = 0;
  };
  struct alignas(64) Worker {
    std::atomic<std::uint32_t> signal{0};
    std::thread thread;
  };
  struct Job {
    SpanFunction function = nullptr;
    void* context = nullptr;
    std::uint64_t chunk = 1;
    std::uint32_t participants = 1;
    const Settings* settings = nullptr;
  };

  void spawn_until(std::uint32_t participants);
  void worker_loop(std::uint32_t id, std::atomic<std::uint32_t>& signal);
  bool join_job(std::uint32_t id);
  void leave_job();
  void work(std::uint32_t id);
  void cut(std::uint64_t count);
  void start(std::uint32_t participants);
  void finish();
  void dispatch(std::uint64_t count, std::uint64_t chunk, std::uint32_t participants,
                SpanFunction function, void* context);

  std::mutex busy_;  // held during a job
  Job job_;
  // Bit 31: the job accepts workers. Other bits: number of workers inside. Job fields change only
  // while this is 0.
  alignas(64) std::atomic<std::uint32_t> gate_{0};
  std::unique_ptr<Slot[]> slots_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<bool> stop_{false};
};

/// The process's pool: created on first use, never destroyed; a forked child gets its own.
ThreadPool& thread_pool();

/// Whether this thread is a worker of a pool.
bool is_pool_thread();

/// Makes later jobs use a new pool, as a thread of this one may hang. Running jobs continue.
void forget_thread_pool();

/// parallel_for on the process's pool with thread_count() threads.
void parallel_for(std::uint64_t count, std::uint64_t min_span, SpanFunction function,
                  void* context);

/// As above for a callable f(begin, end, worker); rethrows the first exception.
template <class F>
void parallel_for(std::uint64_t count, std::uint64_t min_span, const F& f);

/// run_tasks on the process's pool with thread_count() threads.
void run_tasks(std::uint64_t count, const std::function<void(std::uint64_t)>& task);

/// Keeps the first exception of several threads.
class FirstException {
 public:
  void capture() noexcept {
    std::lock_guard lock(mutex_);
    if (!first_) first_ = std::current_exception();
  }
  void rethrow() {
    if (first_) std::rethrow_exception(first_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

template <class F>
void parallel_for(std::uint64_t count, std::uint64_t min_span, const F& f) {
  struct Call {
    const F* function;
    FirstException error;
  } call{&f, {}};
  SpanFunction run = [](void* context, std::uint64_t begin, std::uint64_t end,
                        std::uint32_t worker) {
    Call& c = *static_cast<Call*>(context);
    try {
      (*c.function)(begin, end, worker);
    } catch (...) {
      c.error.capture();
    }
  };
  parallel_for(count, min_span, run, &call);
  call.error.rethrow();
}

}  // namespace plugrad
