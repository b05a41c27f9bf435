// Compiles other schedules of kernels while the program runs and asks the timing helper which of
// them are correct and close to the kernel's own time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/settings.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/refine/background_work.h"
#include "tuning/helper/timing_helper.h"

namespace plugrad::engine {

/// Processor time left for making candidates for one jitted function. The kernel in progress and
/// the trials of finished candidates may exceed it.
struct RefinementBudget {
  std::atomic<int64_t> left_ns{1'400'000'000};
  void spend(uint64_t ns) { left_ns.fetch_sub(static_cast<int64_t>(ns)); }
  bool is_spent() const { return left_ns.load() <= 0; }
};

/// One kernel that wants candidates.
class CandidateRequest final : public BackgroundWork {
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

  /// A checked candidate that was not taken before; null if there is none now.
  std::shared_ptr<ReadyKernel> take();
  /// Whether all candidates were made and taken.
  bool is_done() const;
  /// The number of candidates that the helper timed.
  uint32_t tried() const;

  void make(CandidateThread& thread) override;
  void end() override;

 private:
  void make_within_budget(CandidateThread& thread);
  void try_all(CandidateThread& thread, tuning::TimingHelper& helper,
               const std::vector<tuning::ParamSpec>& params,
               std::span<const codegen::KernelCode> codes);
  void add(std::shared_ptr<ReadyKernel> candidate);

  const KernelRequest request_;
  const KernelOptions options_;
  const std::shared_ptr<const ReadyKernel> own_;
  const std::shared_ptr<RefinementBudget> budget_;
  const Settings settings_;  // of the requesting thread
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<ReadyKernel>> ready_;
  uint32_t tried_ = 0;
  bool is_made_ = false;
};

/// For tests: replaces the measured time of each launch in a replay; slow candidates are then kept
/// too. Null: measured times.
using LaunchTime = uint64_t (*)(const ReadyKernel& kernel);
void set_launch_times(LaunchTime time);
LaunchTime launch_times();

}  // namespace plugrad::engine
