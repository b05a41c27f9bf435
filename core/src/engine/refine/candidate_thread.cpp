#include "engine/refine/candidate_thread.h"

#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <new>

#include "runtime/queue/exit_wait.h"

namespace plugrad::engine {
namespace {

// Of 19. A thread of this niceness gets a third of the share of one of niceness 0, so a program
// that uses all cores keeps three quarters of the core that it shares.
constexpr int kNiceness = 5;
constexpr tuning::TimingHelper::Limits kLimits{.launch = 2, .compile = 3};

}  // namespace

CandidateThread::CandidateThread(void (*stop_it)()) : stop_(stop_it), pid_(getpid()) {}

void CandidateThread::add(const std::shared_ptr<BackgroundWork>& work) {
  const std::lock_guard lock(mutex_);
  if (is_stopped_ || getpid() != pid_) return work->end();
  waiting_.insert(work->is_urgent() ? std::ranges::find(waiting_, false, &BackgroundWork::is_urgent)
                                    : waiting_.end(),
                  work);
  if (!thread_.joinable()) start();
  wake_.notify_one();
}

void CandidateThread::stop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    if (getpid() != pid_) return;
    if (helper_) helper_->interrupt();
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

tuning::TimingHelper& CandidateThread::helper(runtime::Device& device) {
  const std::string environment =
      fmt::format("{}", fmt::join(tuning::helper_environment(device), "\n"));
  if (helper_ && &helper_->device() == &device && environment_ == environment) return *helper_;
  set_helper(std::make_unique<tuning::TimingHelper>(device, kLimits));
  environment_ = environment;
  return *helper_;
}

void CandidateThread::start() try {
  runtime::before_devices_end(stop_);
  thread_ = std::thread([this] { run(); });
} catch (const std::exception&) {  // without a thread nothing is refined
  is_stopped_ = true;
  for (const auto& work : waiting_) work->end();
}

void CandidateThread::run() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNiceness);
  for (;;) {
    std::shared_ptr<BackgroundWork> next;
    {
      std::unique_lock lock(mutex_);
      if (waiting_.empty() && helper_) {
        lock.unlock();
        set_helper(nullptr);
        lock.lock();
      }
      wake_.wait(lock, [this] { return is_stopped_ || !waiting_.empty(); });
      if (is_stopped_) return;
      next = std::move(waiting_.front());
      waiting_.pop_front();
    }
    try {
      next->make(*this);
    } catch (const std::bad_alloc&) {  // no candidates
    }
    next->end();
  }
}

void CandidateThread::set_helper(std::unique_ptr<tuning::TimingHelper> next) {
  {
    const std::lock_guard lock(mutex_);
    std::swap(helper_, next);
    if (helper_ && is_stopped_) helper_->interrupt();
  }
}  // destroys the previous helper outside the lock

}  // namespace plugrad::engine
