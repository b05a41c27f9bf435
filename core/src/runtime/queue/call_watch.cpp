// One thread checks the running calls ten times in each report interval and sleeps while there are
// none.
#include "runtime/queue/call_watch.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "runtime/device/device_calls.h"

namespace plugrad::runtime {

constexpr unsigned kTicks = 10;
constexpr unsigned kProgressTicks = 2;
constexpr unsigned kIdleTicks = 5;

class CallWatch {
 public:
  static CallWatch& instance() {
    // In static storage: allocation could fail, and calls may last until the process ends.
    alignas(CallWatch) static std::byte place[sizeof(CallWatch)];
    static auto* const one = new (place) CallWatch;
    return *one;
  }

  void begin(WatchedCall& call) {
    const std::lock_guard lock(mutex_);
    call.forks_ = forks_;
    call.after_ = first_;
    if (first_) first_->before_ = &call;
    first_ = &call;
    ++begun_;
    if (!is_started_) start();
    if (is_asleep_) wake_.notify_one();
  }

  // In a forked child the list has no calls of the parent.
  void end(WatchedCall& call) {
    const std::lock_guard lock(mutex_);
    if (call.forks_ != forks_) return;
    (call.before_ ? call.before_->after_ : first_) = call.after_;
    if (call.after_) call.after_->before_ = call.before_;
  }

  void set_time(std::chrono::milliseconds time) {
    const std::lock_guard lock(mutex_);
    time_ = time;
    wake_.notify_one();
  }

 private:
  CallWatch() {
    pthread_atfork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); },
                   [] {
                     CallWatch& own = instance();
                     own.first_ = nullptr;
                     own.is_started_ = own.is_asleep_ = false;
                     ++own.forks_;
                     own.mutex_.unlock();
                   });
    on_exit([](int code, void*) { instance().report_exit(code); }, nullptr);
  }

  // Names the call in which this thread calls exit(). A program that a plugin ends has failed.
  void report_exit(int code) noexcept try {
    std::unique_lock lock(mutex_);
    const WatchedCall* call = first_;
    while (call && !pthread_equal(call->thread_, pthread_self()) && !is_pool_thread())
      call = call->after_;
    if (!call) return;
    const std::string text = call->title();
    lock.unlock();
    log_line(LogLevel::Error,
             fmt::format("{}: exit({}) was called inside of this call, and ends the process", text,
                         code));
    if (code == EXIT_SUCCESS) fail_at_once();
  } catch (...) {  // no memory for the message
    if (code == EXIT_SUCCESS) fail_at_once();
  }

  [[noreturn]] static void fail_at_once() {
    std::fflush(nullptr);
    _exit(EXIT_FAILURE);
  }

  // Blocks all signals, which the program's own threads handle. Without a thread, calls are not
  // reported.
  void start() noexcept {
    is_started_ = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { watch(); }).detach();
    } catch (const std::exception&) {  // no thread, or no memory for it
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void watch() {
    std::unique_lock lock(mutex_);
    std::uint64_t seen = 0;
    for (unsigned idle = 0;; idle = begun_ == seen && !first_ ? idle + 1 : 0) {
      seen = begun_;
      if (idle >= kIdleTicks) {
        is_asleep_ = true;
        wake_.wait(lock, [&] { return begun_ != seen; });
        is_asleep_ = false;
      }
      wake_.wait_for(lock, time_ / kTicks);
      report(lock);
    }
  }

  void report(std::unique_lock<std::mutex>& lock) noexcept try {
    std::vector<std::string> lines, progress;
    for (WatchedCall* call = first_; call; call = call->after_) {
      ++call->ticks_;
      if (call->ticks_ == kProgressTicks && settings().debug >= 0) call->add_progress(progress);
      if (call->ticks_ == kTicks)
        lines.push_back(
            fmt::format("{} after {} s; PLUGRAD_DEVICE_TIMEOUT=SECONDS makes an error "
                        "of a call that takes longer",
                        call->description(), std::chrono::duration<double>(time_).count()));
    }
    lock.unlock();
    for (const std::string& line : lines) log_line(LogLevel::Warning, line);
    for (const std::string& line : progress) debug_write(line);
    lock.lock();
  } catch (...) {  // no memory for a message
    if (!lock.owns_lock()) lock.lock();
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  WatchedCall* first_ = nullptr;
  std::uint64_t begun_ = 0;
  unsigned forks_ = 0;
  bool is_started_ = false, is_asleep_ = false;
  std::chrono::milliseconds time_{10'000};
};

WatchedCall::WatchedCall(const DeviceCalls& device, const char* call,
                         std::string_view subject) noexcept
    : device_(device), call_(call), subject_(subject) {
  CallWatch::instance().begin(*this);
}

WatchedCall::~WatchedCall() {
  CallWatch::instance().end(*this);
}

// E.g. "[launch r_4_8] CPU:0". Requires the list's lock, so that the call has not ended.
std::string WatchedCall::title() const {
  const std::string* const kernel = kernel_.load(std::memory_order_acquire);
  const std::string_view subject = kernel ? std::string_view(*kernel) : subject_;
  return fmt::format("[{}{}{}] {}", call_, subject.empty() ? "" : " ", subject,
                     device_.device_name());
}

std::string WatchedCall::description() const {
  const std::string in_flight = device_.in_flight().names();
  return fmt::format("{}: the call has not returned{}", title(),
                     in_flight.empty() ? "" : ", with " + in_flight + " under way,");
}

// Drivers that compile at the first launch do not report it.
void WatchedCall::add_progress(std::vector<std::string>& lines) const {
  const std::uint64_t count = device_.in_flight().first_launches();
  if (count == 0) return;
  lines.push_back(fmt::format(
      "plugrad: {} runs {} for the first time; its driver may be compiling\n",
      device_.device_name(), count == 1 ? "a kernel" : fmt::format("{} kernels", count)));
}

void report_calls_after(std::chrono::milliseconds time) {
  CallWatch::instance().set_time(time);
}

}  // namespace plugrad::runtime
