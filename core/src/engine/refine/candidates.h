// Makes other schedules of kernels ready while the program runs: on one thread of low priority,
// which asks the timing helper whether they are right and near the kernel's own time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "engine/kernels/kernel_cache.h"
#include "tuning/helper/timing_helper.h"

namespace plugrad::engine {

/// Processor time that may go by before no more candidates are made for one jitted function. The
/// last kernel's and the trials of those that are made come behind it.
struct RefinementBudget {
  std::atomic<int64_t> left_ns{1'400'000'000};
  void spend(uint64_t ns) { left_ns.fetch_sub(static_cast<int64_t>(ns)); }
  bool is_spent() const { return left_ns.load() <= 0; }
};

/// One kernel for which candidates are wanted.
class CandidateRequest {
 public:
  CandidateRequest(KernelRequest request, KernelOptions options,
                   std::shared_ptr<const ReadyKernel> own, std::shared_ptr<RefinementBudget> budget)
      : request_(std::move(request)),
        options_(options),
        own_(std::move(own)),
        budget_(std::move(budget)),
        settings_(settings()) {}

  const KernelRequest& request() const { return request_; }
  const KernelOptions& options() const { return options_; }
  const ReadyKernel& own() const { return *own_; }

  /// A candidate that passed its checks and was not taken before; null where there is none now.
  std::shared_ptr<ReadyKernel> take();
  /// Whether nothing is to come, and all were taken.
  bool is_done() const;
  /// How many the helper timed.
  uint32_t tried() const;

 private:
  friend class CandidateThread;
  void make();
  void make_within_budget();
  void try_all(tuning::TimingHelper& helper, const std::vector<tuning::ParamSpec>& params,
               std::span<const codegen::KernelCode> codes);
  void add(std::shared_ptr<ReadyKernel> candidate);

  const KernelRequest request_;
  const KernelOptions options_;
  const std::shared_ptr<const ReadyKernel> own_;
  const std::shared_ptr<RefinementBudget> budget_;
  const Settings settings_;  // of whoever asked
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ReadyKernel>> ready_;
  uint32_t tried_ = 0;
  bool is_made_ = false;
};

/// For tests: a time for each launch in a replay instead of the measured one; candidates then go on
/// however slow the helper finds them. Null: measured again.
using LaunchTime = uint64_t (*)(const ReadyKernel& kernel);
void set_launch_times(LaunchTime time);
LaunchTime launch_times();

/// Queues the request behind others. Its candidates come later, or none where the thread cannot
/// run.
void make_candidates(const std::shared_ptr<CandidateRequest>& request);

}  // namespace plugrad::engine
