#include "engine/refine/refinement.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/trace/trace.h"
#include "engine/plan/ready_plan.h"
#include "engine/plan/trace_plan.h"
#include "engine/refine/promotion.h"
#include "engine/session_state.h"
#include "tuning/helper/check_plan.h"
#include "tuning/helper/contents.h"
#include "tuning/kernel_schedule.h"

namespace plugrad::engine {
namespace {

constexpr uint32_t kProfiledRuns = 2;
constexpr double kLeastShare = 0.01;      // of the time of all kernels in a run
constexpr uint64_t kShortestNs = 20'000;  // ten times the spread of launch and clock
constexpr size_t kPairs = 3;              // runs with the kernel and runs with the candidate
constexpr double kHopeless = 1.1;         // x the kernel's time: dropped after the first pair
constexpr double kGain = 0.97;  // x the kernel's time at most: the accuracy of medians of three
constexpr double kExtra = 0.4;  // largest part of a run that a comparison may add
constexpr uint64_t kPiece = 64 << 10, kPieces = 16;  // bytes compared of each buffer

uint64_t median(std::vector<uint64_t> samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::ranges::nth_element(samples, middle);
  return *middle;
}

runtime::Launch launch_of(const ReadyKernel& ready, std::span<runtime::Buffer* const> params,
                          std::span<const uint64_t> scalars) {
  const codegen::KernelCode& code = ready.code;
  return {.buffers = params.first(ready.param_count),
          .scalars = scalars,
          .group_count = {code.group_count[0], code.group_count[1], code.group_count[2]},
          .local_size = {code.local_size[0], code.local_size[1], code.local_size[2]}};
}

uint64_t timed_launch(ReadyKernel& kernel, std::span<runtime::Buffer* const> params,
                      std::span<const uint64_t> scalars, LaunchLog& log) {
  uint64_t ns = 0;
  log.launch(kernel, params, scalars, &ns);
  const LaunchTime given = launch_times();
  return given ? given(kernel) : ns;
}

// Compares evenly spaced pieces of the two kernels' output.
std::string difference_in(const tuning::ParamSpec& spec, const runtime::Buffer& own,
                          const runtime::Buffer& candidate, double tolerance) {
  const uint64_t size = own.size_bytes();
  const uint64_t pieces = std::clamp<uint64_t>(size / kPiece, 1, kPieces);
  for (uint64_t i = 0; i < pieces; ++i) {
    const uint64_t bytes = std::min(size, kPiece);
    const uint64_t last = (size - bytes) / kPiece;
    const uint64_t at = pieces == 1 ? 0 : i * last / (pieces - 1) * kPiece;
    std::vector<std::byte> want(bytes), have(bytes);
    own.copy_out(want.data(), bytes, at);
    candidate.copy_out(have.data(), bytes, at);
    std::string unequal = tuning::difference(spec, {want, have, {}, tolerance});
    if (!unequal.empty()) return unequal;
  }
  return {};
}

bool may_be_promoted(const ReadyKernel& kernel) {
  return kernel.promotion && kernel.promotion->state() != Promotion::State::Stays;
}

}  // namespace

bool Refinement::begin(ReadyPlan& ready) {
  switch (phase_) {
    case Phase::Warm:
      if (runs_++ == 0) return false;
      phase_ = Phase::Profile;
      runs_ = 0;
      times_.assign(ready.plan.steps.size(), std::numeric_limits<uint64_t>::max());
      return true;
    case Phase::Profile:
      return true;
    case Phase::Trials:
      if (!trial_ && !next_trial()) return false;
      trial_->now_ns = 0;
      return true;
    case Phase::Done:
      if (!has_settled_ || ready.is_promoting) break;
      has_settled_ = false;
      phase_ = Phase::Warm;
      runs_ = 0;
      total_ns_ = 0;
      break;
  }
  return false;
}

void Refinement::launch(const ReadyPlan& ready, size_t step,
                        std::span<runtime::Buffer* const> params, LaunchLog& log) {
  const auto& scalars = ready.plan.steps[step].scalars;
  if (phase_ == Phase::Profile) {
    const uint64_t ns = timed_launch(*ready.kernels[step], params, scalars, log);
    times_[step] = std::min(times_[step], ns);
    return;
  }
  const std::vector<size_t>& steps = groups_[trial_->group].steps;
  if (std::ranges::find(steps, step) == steps.end())
    return log.launch(*ready.kernels[step], params, scalars);
  if (trial_->is_first() && step == steps.front() && affords_comparison(groups_[trial_->group]))
    return launch_compared(ready, step, params, log);
  ReadyKernel& kernel = trial_->is_of_candidate() ? *trial_->candidate : *ready.kernels[step];
  if (tracing()) trace_kernel_of_step(ready, step, kernel);
  trial_->now_ns += timed_launch(kernel, params, scalars, log);
}

void Refinement::end(ReadyPlan& ready) {
  if (phase_ == Phase::Profile && ++runs_ == kProfiledRuns) choose(ready);
  if (phase_ != Phase::Trials || !trial_) return;
  (trial_->is_of_candidate() ? trial_->candidate_ns : trial_->own_ns).push_back(trial_->now_ns);
  decide(ready);
}

// Skips kernels with a record in the database: a search or an earlier process already tuned them.
void Refinement::choose(ReadyPlan& ready) {
  phase_ = Phase::Trials;
  for (size_t i = 0; i < ready.kernels.size(); ++i) {
    if (!ready.kernels[i]) continue;
    total_ns_ += times_[i];
    const bool is_ours = ready.plan.steps[i].kind == schedule::Step::Kind::Kernel;
    if (!is_ours || !ready.kernels[i]->ast || may_be_promoted(*ready.kernels[i])) continue;
    auto group = std::ranges::find(groups_, ready.kernels[i], &Group::own);
    if (group == groups_.end())
      group = groups_.insert(groups_.end(), Group{.own = ready.kernels[i]});
    group->steps.push_back(i);
    group->own_ns += times_[i];
  }
  std::erase_if(groups_, [&](const Group& group) {
    const double least = kLeastShare * static_cast<double>(total_ns_);
    return static_cast<double>(group.own_ns) < least ||
           group.own_ns < kShortestNs * group.steps.size();
  });
  std::ranges::stable_sort(groups_, std::greater{}, &Group::own_ns);
  for (Group& group : groups_) {
    group.first_ns = group.own_ns;
    const KernelRequest request{group.own->ast, &group.own->kernel->device()};
    const auto key =
        tuning::schedule_key(*request.ast, *request.device, codegen_options(request, options_));
    group.is_kept = tuning::schedule_database().find(key).has_value();
    if (group.is_kept) continue;
    group.request = std::make_shared<CandidateRequest>(request, options_, group.own, budget_);
    Session::current().state().candidates.add(group.request);
  }
}

// False if no candidate is ready now.
bool Refinement::next_trial() {
  bool is_done = true;
  for (size_t i = 0; i < groups_.size(); ++i) {
    Group& group = groups_[i];
    if (!group.request) continue;
    if (auto candidate = group.request->take()) {
      trial_ = std::make_unique<Trial>(Trial{.group = i, .candidate = std::move(candidate)});
      return true;
    }
    if (group.request->is_done())
      keep(group);
    else
      is_done = false;
  }
  if (is_done) {
    phase_ = Phase::Done;
    groups_.clear();
  }
  return false;
}

// A difference is logged but is no warning: candidates sum in another order, which may show on real
// data with cancellation.
void Refinement::decide(ReadyPlan& ready) {
  const Trial& trial = *trial_;
  Group& group = groups_[trial.group];
  if (!trial.problem.empty()) {
    log_line(LogLevel::Info,
             fmt::format("[refine] {}: {} is not used: {}", group.own->code.name,
                         codegen::to_string(trial.candidate->code.schedule), trial.problem));
    trial_ = nullptr;
    return;
  }
  if (trial.candidate_ns.size() < trial.own_ns.size() || trial.candidate_ns.empty()) return;
  const uint64_t own = median(trial.own_ns), other = median(trial.candidate_ns);
  if (other > own)
    budget_->spend(trial.candidate_ns.back() - std::min(own, trial.candidate_ns.back()));
  const double ratio = static_cast<double>(other) / static_cast<double>(std::max<uint64_t>(own, 1));
  if (trial.candidate_ns.size() < kPairs && ratio <= kHopeless) return;
  group.own_ns = own;
  note_times(group, trial, other);
  if (ratio < kGain) accept(ready, group, other);
  trial_ = nullptr;
}

// For the trace, in which the helper's times are too: the least of a schedule counts.
void Refinement::note_times(const Group& group, const Trial& trial, uint64_t candidate_ns) const {
  const double each = 1e-9 / static_cast<double>(group.steps.size());
  const auto note = [&](const ReadyKernel& kernel, uint64_t ns) {
    tuning::note_measured(*kernel.ast, kernel.kernel->device(), kernel.code.schedule,
                          static_cast<double>(ns) * each);
  };
  note(*group.own, group.own_ns);
  note(*trial.candidate, candidate_ns);
}

void Refinement::accept(ReadyPlan& ready, Group& group, uint64_t ns) {
  const auto better = trial_->candidate;
  if (debugging(1))
    debug_write(fmt::format(
        "refined {} on {}: {:.1f} us -> {:.1f} us: {} instead of {}\n",
        as_shown(group.own->code.colored_name), group.own->kernel->device().name(),
        static_cast<double>(group.own_ns) * 1e-3, static_cast<double>(ns) * 1e-3,
        codegen::to_string(better->code.schedule), codegen::to_string(group.own->code.schedule)));
  for (const size_t step : group.steps) ready.kernels[step] = better;
  ready.prepared = nullptr;
  kernels_.replace(group.request->request(), options_, better);
  group.own = better;
  group.own_ns = ns;
}

void Refinement::keep(Group& group) {
  if (std::exchange(group.is_kept, true) || group.request->tried() == 0) return;
  const KernelRequest& request = group.request->request();
  tuning::ScheduleRecord record =
      tuning::schedule_key(*request.ast, *request.device, codegen_options(request, options_));
  const double steps = static_cast<double>(group.steps.size());
  record.list = codegen::to_string(group.own->code.schedule);
  record.seconds = static_cast<double>(group.own_ns) * 1e-9 / steps;
  record.first_seconds = static_cast<double>(group.first_ns) * 1e-9 / steps;
  record.tried = group.request->tried();
  tuning::schedule_database().add_quietly(record);
}

// Whether one extra launch of the candidate is short enough compared with the run.
bool Refinement::affords_comparison(const Group& group) const {
  return static_cast<double>(group.own_ns) / static_cast<double>(group.steps.size()) <
         kExtra * static_cast<double>(total_ns_);
}

// The candidate runs first, on copies of its outputs: the kernel may overwrite its own inputs.
void Refinement::launch_compared(const ReadyPlan& ready, size_t step,
                                 std::span<runtime::Buffer* const> params, LaunchLog& log) {
  Trial& trial = *trial_;
  const trace::Scope span(trace::Category::Search, "compare candidate");
  const KernelAst& ast = *trial.candidate->ast;
  const std::vector<tuning::ParamSpec> specs = tuning::params_of(ast);
  const auto& scalars = ready.plan.steps[step].scalars;
  const uint64_t begin_ns = monotonic_ns();
  std::vector<std::shared_ptr<runtime::Buffer>> copies(params.size());
  if (tracing()) trace_kernel_of_step(ready, step, *trial.candidate);
  try {
    runtime::Device& device = trial.candidate->kernel->device();
    std::vector<runtime::Buffer*> others(params.begin(), params.end());
    for (size_t i = 0; i < std::min(specs.size(), params.size()); ++i) {
      if (!(specs[i].flags & PGR_PARAM_WRITE)) continue;
      copies[i] = device.allocate(params[i]->size_bytes());
      runtime::copy(*copies[i], 0, *params[i], 0, params[i]->size_bytes());
      others[i] = copies[i].get();
    }
    device.launch(*trial.candidate->kernel, launch_of(*trial.candidate, others, scalars));
  } catch (const Error& e) {
    trial.problem = e.what();
  }
  const uint64_t extra_ns = monotonic_ns() - begin_ns;
  trial.now_ns += timed_launch(*ready.kernels[step], params, scalars, log);
  const uint64_t compared_ns = monotonic_ns();
  for (size_t i = 0; i < copies.size() && trial.problem.empty(); ++i)
    if (copies[i])
      trial.problem = difference_in(specs[i], *params[i], *copies[i], tuning::rounding_of(ast));
  budget_->spend(extra_ns + monotonic_ns() - compared_ns);
}

void refine(std::span<const std::shared_ptr<ReadyPlan>> plans, KernelCache& kernels) {
  if (!may_refine()) return;
  const auto budget = std::make_shared<RefinementBudget>();
  for (const std::shared_ptr<ReadyPlan>& ready : plans)
    if (!ready->refinement && ready->sizes.empty())
      ready->refinement =
          std::make_shared<Refinement>(budget, KernelOptions::from_settings(), kernels);
}

}  // namespace plugrad::engine
