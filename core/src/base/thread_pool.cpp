// A gate word holds whether a job accepts workers, and how many are inside. Participants take spans
// with fetch_add from slots, one slot each. The caller closes the gate when no span is left and
// waits for those inside.
#include "base/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>

#include "base/clock.h"
#include "base/trace/trace.h"

namespace plugrad {
namespace {

constexpr std::uint32_t kOpen = 1u << 31;
constexpr auto kSpin = std::chrono::microseconds(100);
constexpr std::uint64_t kChunksPerThread = 4;  // spans per slot: balances unequal speeds

// The worker number of this thread inside a job; kOutside elsewhere.
constexpr std::uint32_t kOutside = UINT32_MAX;
thread_local std::uint32_t worker_of_thread = kOutside;
thread_local bool is_worker_thread = false;

unsigned fork_number = 0;  // changed in a child, before it has a second thread

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

// Returns once done() holds: spins for 100 us, then calls `sleep` before each check.
template <class Done, class Sleep>
void spin_then_sleep(const Done& done, const Sleep& sleep) {
  auto start = std::chrono::steady_clock::now();
  while (true) {
    for (int i = 0; i < 64; ++i) {
      if (done()) return;
      relax();
    }
    if (std::chrono::steady_clock::now() - start > kSpin) break;
  }
  while (!done()) sleep();
}

}  // namespace

ThreadPool::ThreadPool() : slots_(new Slot[kMaxThreads]) {
  workers_.reserve(kMaxThreads);
}

ThreadPool::~ThreadPool() {
  stop_.store(true, std::memory_order_release);
  for (auto& worker : workers_) {
    worker->signal.fetch_add(1, std::memory_order_release);
    worker->signal.notify_one();
  }
  for (auto& worker : workers_) worker->thread.join();
}

void ThreadPool::spawn_until(std::uint32_t participants) {
  while (workers_.size() + 1 < participants) {
    auto id = static_cast<std::uint32_t>(workers_.size() + 1);
    Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
    try {
      worker.thread = std::thread([this, id, &worker] { worker_loop(id, worker.signal); });
    } catch (const std::exception&) {  // no more threads, or no memory: the others do the work
      workers_.pop_back();
      return;
    }
  }
}

void ThreadPool::worker_loop(std::uint32_t id, std::atomic<std::uint32_t>& signal) {
  char name[16];
  *fmt::format_to_n(name, sizeof name - 1, "pool {}", id).out = 0;
  ::pthread_setname_np(::pthread_self(), name);
  is_worker_thread = true;
  const unsigned forks = fork_number;
  std::uint32_t seen = 0;
  while (true) {
    spin_then_sleep([&] { return signal.load(std::memory_order_acquire) != seen; },
                    [&] { signal.wait(seen, std::memory_order_acquire); });
    seen = signal.load(std::memory_order_acquire);
    if (stop_.load(std::memory_order_acquire)) return;
    if (!join_job(id)) continue;
    lend_scoped_settings(job_.settings);
    worker_of_thread = id;
    const std::uint64_t start_ns = tracing() ? monotonic_ns() : 0;
    work(id);
    if (forks != fork_number) _exit(EXIT_FAILURE);  // a child forked here has no other thread
    const std::uint64_t end_ns = start_ns != 0 ? monotonic_ns() : 0;
    worker_of_thread = kOutside;
    lend_scoped_settings(nullptr);
    leave_job();
    // After leaving, as the caller waits for that.
    if (start_ns != 0) trace::span_between(trace::Category::Pool, "work", start_ns, end_ns);
  }
}

// A worker that wakes late may find the gate closed, or open for a later job with fewer
// participants.
bool ThreadPool::join_job(std::uint32_t id) {
  std::uint32_t gate = gate_.load(std::memory_order_relaxed);
  do {
    if (!(gate & kOpen)) return false;
  } while (!gate_.compare_exchange_weak(gate, gate + 1, std::memory_order_acquire,
                                        std::memory_order_relaxed));
  if (id < job_.participants) return true;
  leave_job();
  return false;
}

void ThreadPool::leave_job() {
  if (gate_.fetch_sub(1, std::memory_order_acq_rel) == 1) gate_.notify_one();
}

// Takes spans of its own slot first: memory stays with the thread that last touched it.
void ThreadPool::work(std::uint32_t id) {
  for (std::uint32_t k = 0; k < job_.participants; ++k) {
    Slot& slot = slots_[(id + k) % job_.participants];
    while (slot.next.load(std::memory_order_relaxed) < slot.end) {
      std::uint64_t begin = slot.next.fetch_add(job_.chunk, std::memory_order_relaxed);
      if (begin >= slot.end) break;
      job_.function(job_.context, begin, std::min(begin + job_.chunk, slot.end), id);
    }
  }
}

// Slot bounds are multiples of the chunk, so all spans but the last have the chunk's length.
void ThreadPool::cut(std::uint64_t count) {
  std::uint64_t chunks = (count + job_.chunk - 1) / job_.chunk;
  std::uint64_t each = chunks / job_.participants, rest = chunks % job_.participants, from = 0;
  for (std::uint32_t i = 0; i < job_.participants; ++i) {
    std::uint64_t to = from + each + (i < rest ? 1 : 0);
    slots_[i].next.store(std::min(from * job_.chunk, count), std::memory_order_relaxed);
    slots_[i].end = std::min(to * job_.chunk, count);
    from = to;
  }
}

void ThreadPool::start(std::uint32_t participants) {
  gate_.store(kOpen, std::memory_order_release);
  for (std::uint32_t i = 0; i + 1 < participants; ++i) {
    workers_[i]->signal.fetch_add(1, std::memory_order_release);
    workers_[i]->signal.notify_one();
  }
}

void ThreadPool::finish() {
  gate_.fetch_and(~kOpen, std::memory_order_acq_rel);
  spin_then_sleep([&] { return gate_.load(std::memory_order_acquire) == 0; },
                  [&] {
                    std::uint32_t gate = gate_.load(std::memory_order_acquire);
                    if (gate != 0) gate_.wait(gate, std::memory_order_acquire);
                  });
}

void ThreadPool::dispatch(std::uint64_t count, std::uint64_t chunk, std::uint32_t participants,
                          SpanFunction function, void* context) {
  std::unique_lock lock(busy_, std::defer_lock);
  bool inside = worker_of_thread != kOutside;
  if (inside || participants <= 1 || !lock.try_lock()) {
    function(context, 0, count, inside ? worker_of_thread : 0);
    return;
  }
  spawn_until(participants);
  participants = std::min(participants, static_cast<std::uint32_t>(workers_.size()) + 1);
  job_ = {function, context, chunk, participants, scoped_settings()};
  cut(count);
  const unsigned forks = fork_number;
  start(participants);
  worker_of_thread = 0;
  work(0);
  worker_of_thread = kOutside;
  if (forks == fork_number) finish();  // a child that the job forked has no workers to wait for
}

void ThreadPool::parallel_for(std::uint64_t count, std::uint64_t min_span, std::uint32_t threads,
                              SpanFunction function, void* context) {
  if (count == 0) return;
  min_span = std::max<std::uint64_t>(min_span, 1);
  threads = std::clamp(threads, 1u, kMaxThreads);
  std::uint64_t spans = std::max<std::uint64_t>(count / min_span, 1);
  auto participants = static_cast<std::uint32_t>(std::min<std::uint64_t>(threads, spans));
  spans = std::min(spans, participants * kChunksPerThread);
  dispatch(count, (count + spans - 1) / spans, participants, function, context);
}

void ThreadPool::run_tasks(std::uint64_t count, std::uint32_t threads,
                           const std::function<void(std::uint64_t)>& task) {
  if (count == 0) return;
  struct Call {
    const std::function<void(std::uint64_t)>* task;
    FirstException error;
  } call{&task, {}};
  SpanFunction run = [](void* context, std::uint64_t begin, std::uint64_t end, std::uint32_t) {
    Call& c = *static_cast<Call*>(context);
    for (std::uint64_t i = begin; i < end; ++i) {
      try {
        (*c.task)(i);
      } catch (...) {
        c.error.capture();
      }
    }
  };
  auto participants = std::min<std::uint64_t>(std::clamp(threads, 1u, kMaxThreads), count);
  dispatch(count, 1, static_cast<std::uint32_t>(participants), run, &call);
  call.error.rethrow();
}

namespace {

std::atomic<ThreadPool*> the_pool{nullptr};

// Threads do not survive a fork: the child abandons the parent's pool and creates its own on
// demand.
void forget_pool_in_child() {
  ++fork_number;
  the_pool.store(nullptr, std::memory_order_relaxed);
  worker_of_thread = kOutside;
}

}  // namespace

ThreadPool& thread_pool() {
  if (ThreadPool* pool = the_pool.load(std::memory_order_acquire)) return *pool;
  static const int registered = pthread_atfork(nullptr, nullptr, forget_pool_in_child);
  (void)registered;
  auto made = std::make_unique<ThreadPool>();  // without threads yet: losing the race is cheap
  ThreadPool* expected = nullptr;
  if (the_pool.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *expected;
}

bool is_pool_thread() {
  return is_worker_thread;
}

void forget_thread_pool() {
  the_pool.store(nullptr, std::memory_order_release);
}

void parallel_for(std::uint64_t count, std::uint64_t min_span, SpanFunction function,
                  void* context) {
  thread_pool().parallel_for(count, min_span, static_cast<std::uint32_t>(thread_count()), function,
                             context);
}

void run_tasks(std::uint64_t count, const std::function<void(std::uint64_t)>& task) {
  thread_pool().run_tasks(count, static_cast<std::uint32_t>(thread_count()), task);
}

}  // namespace plugrad
