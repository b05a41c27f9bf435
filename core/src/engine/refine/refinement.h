// Improves the schedules of plans that a jitted function replays: the first replays time the
// kernels, later ones try candidates one at a time, and the fastest stays. Design:
// docs/decisions/replays-refine-their-kernels.md.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/execute/launch_log.h"
#include "engine/refine/candidates.h"
#include "tuning/helper/messages.h"

namespace plugrad::engine {

struct ReadyPlan;

/// Refines one recorded plan. Requires the session's mutex.
class Refinement {
 public:
  Refinement(std::shared_ptr<RefinementBudget> budget, const KernelOptions& options,
             KernelCache& kernels)
      : budget_(std::move(budget)), options_(options), kernels_(kernels) {}

  /// A refinement for a plan made of some of this plan's steps.
  std::shared_ptr<Refinement> again() const {
    return std::make_shared<Refinement>(budget_, options_, kernels_);
  }

  /// Kernels that it skipped, as their schedules were frugal, have final ones.
  void note_settled() { has_settled_ = true; }

  /// Starts a run of the plan. Returns whether its kernels must be launched by launch(), one by
  /// one.
  bool begin(ReadyPlan& ready);
  void launch(const ReadyPlan& ready, size_t step, std::span<runtime::Buffer* const> params,
              LaunchLog& log);
  /// Ends a run that succeeded.
  void end(ReadyPlan& ready);

 private:
  enum class Phase { Warm, Profile, Trials, Done };

  // The steps that launch the same kernel.
  struct Group {
    std::shared_ptr<ReadyKernel> own;  // the best so far
    std::vector<size_t> steps{};
    uint64_t first_ns = 0, own_ns = 0;  // ns in a run, summed over steps
    std::shared_ptr<CandidateRequest> request{};
    bool is_kept = false;  // its result is in the database
  };
  struct Trial {
    size_t group = 0;
    std::shared_ptr<ReadyKernel> candidate;
    std::vector<uint64_t> own_ns{}, candidate_ns{};  // by run, summed over steps
    uint64_t now_ns = 0;                             // in this run
    std::string problem{};
    bool is_of_candidate() const { return candidate_ns.size() < own_ns.size(); }
    bool is_first() const { return own_ns.empty(); }
  };

  void choose(ReadyPlan& ready);
  bool next_trial();
  void decide(ReadyPlan& ready);
  void note_times(const Group& group, const Trial& trial, uint64_t candidate_ns) const;
  void accept(ReadyPlan& ready, Group& group, uint64_t ns);
  void keep(Group& group);
  bool affords_comparison(const Group& group) const;
  void launch_compared(const ReadyPlan& ready, size_t step,
                       std::span<runtime::Buffer* const> params, LaunchLog& log);

  const std::shared_ptr<RefinementBudget> budget_;
  const KernelOptions options_;
  KernelCache& kernels_;
  Phase phase_ = Phase::Warm;
  uint32_t runs_ = 0;            // in this phase
  bool has_settled_ = false;     // kernels that no profile has seen
  std::vector<uint64_t> times_;  // by step, the least of the profiled runs
  uint64_t total_ns_ = 0;
  std::vector<Group> groups_;
  std::unique_ptr<Trial> trial_;
};

/// Refines these plans, which are replayed together, from now on, if the settings allow it.
void refine(std::span<const std::shared_ptr<ReadyPlan>> plans, KernelCache& kernels);

}  // namespace plugrad::engine
