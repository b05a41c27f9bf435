// Kernels that are short even with little code are made with a frugal schedule first; those that
// run for long enough get the full one from the background thread. Design:
// docs/decisions/schedules-are-frugal-first.md.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/settings.h"
#include "engine/kernels/kernel_cache.h"
#include "engine/refine/background_work.h"

namespace plugrad::engine {

struct ReadyPlan;

/// Of one kernel, shared by the plans that launch it.
class Promotion final : public BackgroundWork, public std::enable_shared_from_this<Promotion> {
 public:
  /// `seconds`: predicted for a launch with the frugal schedule.
  Promotion(KernelRequest request, const KernelOptions& options, double seconds)
      : request_(std::move(request)), options_(options), seconds_(seconds), settings_(settings()) {}

  /// Of a kernel that computes the same as this promotion's one, but takes its `numbers` at launch.
  std::shared_ptr<Promotion> of_taking(KernelRequest request,
                                       std::span<const uint64_t> numbers) const;

  enum class State : uint8_t { Running, Asked, Made, Stays };
  State state() const { return state_; }
  /// Counts a launch; asks for the full schedule once it may pay. Requires the session's mutex.
  void note_launch();
  /// The kernel with the full schedule, once state() is Made. Requires the session's mutex.
  std::shared_ptr<ReadyKernel> take();

  bool is_urgent() const override { return true; }
  void make(CandidateThread& thread) override;
  void end() override;

 private:
  // The kernel with constants, which decides the schedule of one that takes them as numbers.
  struct Like {
    KernelRequest request;
    std::vector<uint64_t> numbers;
  };
  bool pays(const codegen::KernelCode& full);
  std::shared_ptr<ReadyKernel> made();

  const KernelRequest request_;
  const KernelOptions options_;
  const double seconds_;
  const Settings settings_;        // of the thread that made the kernel
  std::atomic<double> spent_{0};   // seconds, as predicted
  std::atomic<double> price_{-1};  // of them, for the full schedule; -1: not estimated yet
  std::atomic<State> state_{State::Running};
  std::shared_ptr<ReadyKernel> full_;  // written before state_ is Made
  bool is_cached_ = false;
  std::optional<Like> like_;
};

/// For tests: the predicted seconds of launches after which a full schedule is looked at; 0 makes it.
void set_promotion_price(double seconds);

/// Counts a run of the plan; replaces kernels whose full schedule is ready. Requires the session's
/// mutex.
void promote(ReadyPlan& ready);

}  // namespace plugrad::engine
