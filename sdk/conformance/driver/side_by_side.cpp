#include "conformance/driver/side_by_side.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace plugrad::conformance {
namespace {

class SideBySide {
 public:
  SideBySide(size_t count, const std::function<RunOne()>& make_lane)
      : make_lane_(make_lane), results_(count), is_done_(count) {}

  void run(uint32_t lanes, const std::function<bool(TestResult)>& take) {
    {
      std::vector<std::jthread> threads;
      try {
        for (uint32_t i = 0; i < lanes; ++i) threads.emplace_back([this] { serve(); });
        hand_over(take);
      } catch (...) {
        stop();
        throw;
      }
      stop();
    }
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }

  // The index of the next unstarted test.
  std::optional<size_t> next() {
    const std::lock_guard lock(mutex_);
    if (stopped_ || next_ == results_.size()) return std::nullopt;
    return next_++;
  }

  void serve() {
    try {
      const RunOne run_one = make_lane_();
      while (const std::optional<size_t> number = next()) {
        std::optional<TestResult> result = run_one(*number);
        const std::lock_guard lock(mutex_);
        results_[*number] = std::move(result);
        is_done_[*number] = true;
        done_.notify_one();
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      failure_ = std::current_exception();
      stopped_ = true;
      done_.notify_one();
    }
  }

  void hand_over(const std::function<bool(TestResult)>& take) {
    for (size_t number = 0; number < results_.size(); ++number) {
      std::unique_lock lock(mutex_);
      done_.wait(lock, [&] { return is_done_[number] || failure_; });
      if (failure_) return;
      std::optional<TestResult> result = std::move(results_[number]);
      lock.unlock();
      if (result && !take(std::move(*result))) return;
    }
  }

  const std::function<RunOne()>& make_lane_;
  std::mutex mutex_;
  std::condition_variable done_;
  size_t next_ = 0;
  bool stopped_ = false;
  std::exception_ptr failure_;
  std::vector<std::optional<TestResult>> results_;
  std::vector<bool> is_done_;
};

}  // namespace

void run_side_by_side(size_t count, uint32_t lanes, const std::function<RunOne()>& make_lane,
                      const std::function<bool(TestResult)>& take) {
  if (lanes > 1 && count > 1)
    return SideBySide(count, make_lane)
        .run(static_cast<uint32_t>(std::min<size_t>(lanes, count)), take);
  const RunOne run_one = make_lane();
  for (size_t number = 0; number < count; ++number) {
    std::optional<TestResult> result = run_one(number);
    if (result && !take(std::move(*result))) return;
  }
}

}  // namespace plugrad::conformance
