#include "runtime/checks/limited_call.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/thread_pool.h"
#include "runtime/status.h"

namespace plugrad::runtime {
namespace {

constexpr auto kSpin = std::chrono::microseconds(50);  // a wake-up by the system takes 5 to 50 us

// Waits until signal() sets the flag: spins first, then sleeps.
class Gate {
 public:
  void signal() {
    {
      const std::lock_guard lock(mutex_);
      is_set_.store(true, std::memory_order_release);
    }
    changed_.notify_one();
  }
  bool wait(std::optional<std::chrono::nanoseconds> limit) {
    const auto start = std::chrono::steady_clock::now();
    while (!is_set_.load(std::memory_order_acquire)) {
      if (std::chrono::steady_clock::now() - start < kSpin) continue;
      std::unique_lock lock(mutex_);
      const auto is_set = [&] { return is_set_.load(std::memory_order_relaxed); };
      if (limit) return changed_.wait_until(lock, start + *limit, is_set);
      changed_.wait(lock, is_set);
    }
    return true;
  }
  void reset() { is_set_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> is_set_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
};

struct Job {
  DeviceCall call;
  std::unique_ptr<const Settings> scope;
  char message[CallError::kCapacity] = {};  // the job may outlive the caller's thread
  CallError error{message};
  std::exception_ptr escaped;
  pgr_status status = PGR_STATUS_INTERNAL;
  Gate done;

  void run() {
    lend_scoped_settings(scope.get());
    try {
      status = call(error.get());
    } catch (...) {
      escaped = std::current_exception();
    }
    lend_scoped_settings(nullptr);
    done.signal();
  }
};

struct Worker {
  std::shared_ptr<Job> job;
  Gate posted;
  std::atomic<bool> is_left{false};
};

// Owned jointly by its thread and the current caller; an abandoned worker ends after its call.
void work(std::shared_ptr<Worker> worker) {
  while (!worker->is_left.load()) {
    worker->posted.wait(std::nullopt);
    worker->posted.reset();
    const std::shared_ptr<Job> job = std::move(worker->job);
    job->run();
  }
}

// Idle workers, the last used at the end. Never destroyed, so that no destructor waits for them.
struct Idle {
  std::mutex mutex;
  std::vector<std::shared_ptr<Worker>> workers;
};

std::atomic<Idle*> all_idle = nullptr;  // created on first use

Idle& idle_workers() {
  Idle* now = all_idle;
  if (now) return *now;
  auto made = std::make_unique<Idle>();
  return all_idle.compare_exchange_strong(now, made.get()) ? *made.release() : *now;
}

// Threads do not survive a fork, so the child starts without workers.
void forget_workers_on_fork() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] { all_idle = nullptr; });
  (void)registered;
}

std::shared_ptr<Worker> take_worker() {
  forget_workers_on_fork();
  Idle& idle = idle_workers();
  {
    const std::lock_guard lock(idle.mutex);
    if (!idle.workers.empty()) {
      auto worker = std::move(idle.workers.back());
      idle.workers.pop_back();
      return worker;
    }
  }
  auto worker = std::make_shared<Worker>();
  try {
    std::thread(work, worker).detach();
  } catch (const std::system_error&) {
    return nullptr;
  }
  return worker;
}

void give_worker(std::shared_ptr<Worker> worker) {
  Idle& idle = idle_workers();
  const std::lock_guard lock(idle.mutex);
  idle.workers.push_back(std::move(worker));
}

}  // namespace

std::optional<pgr_status> run_limited(DeviceCall call, std::chrono::nanoseconds limit,
                                      pgr_error* error) {
  std::shared_ptr<Worker> worker = take_worker();
  if (!worker) return call(error);
  const auto job = std::make_shared<Job>();
  job->call = std::move(call);
  if (const Settings* scope = scoped_settings()) job->scope = std::make_unique<Settings>(*scope);
  worker->job = job;
  worker->posted.signal();
  if (!job->done.wait(limit)) {
    worker->is_left = true;
    forget_thread_pool();  // the call may be inside one of its jobs
    return std::nullopt;
  }
  give_worker(std::move(worker));
  if (job->escaped) std::rethrow_exception(job->escaped);
  if (job->status != PGR_STATUS_OK) set_error(error, job->status, job->error.message());
  return job->status;
}

}  // namespace plugrad::runtime
