// Only schedules within the bounds that the search for a register tile keeps are gone to. A kernel
// that computes, or moves its bytes, for most of its time is left alone: no schedule changes that.
// Copies of operands, and the loops around them, stay as the first schedule has them: the model
// orders them too coarsely (1x1 convolutions of ResNet-50, x86-64-v3: predicted 0.7 of the time,
// measured 1.3).
#include "codegen/search/climb.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "codegen/report.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/apply.h"

namespace plugrad::codegen {
namespace {

// The model counts a fifth of what runs beside the slowest part (cost_cycles.cpp): where arithmetic
// or bytes alone take so much of the time, they are the slowest part, and the rest is beside them.
constexpr double kBusy = 0.6;

// The time of a launch that all threads share, in cycles.
double cycles_of(const Candidate& candidate, const cost::Machine& machine) {
  const Prediction& p = candidate.prediction;
  return std::max(p.cycles.all / p.busy, p.moving(machine, p.busy));
}

bool is_near_its_limit(const Candidate& candidate, const cost::Machine& machine) {
  const Prediction& p = candidate.prediction;
  const double least = std::max(p.cycles.arithmetic / p.busy, p.moving(machine, p.busy));
  return cycles_of(candidate, machine) * kBusy < least;
}

// The changes that say which operands are copied, and in which order the loops around them run.
std::string copies_of(const KernelSchedule& list) {
  using Kind = ScheduleStep::Kind;
  const auto is_of_copies = [](const ScheduleStep& change) {
    return change.kind == Kind::CacheRead || change.kind == Kind::Block ||
           change.kind == Kind::Swap || change.kind == Kind::SplitK;
  };
  KernelSchedule out;
  std::ranges::copy_if(list, std::back_inserter(out), is_of_copies);
  return std::ranges::any_of(out, [](const auto& c) { return c.kind == Kind::CacheRead; })
             ? to_string(out)
             : std::string();
}

}  // namespace

Climb climb(const SearchSpace& space, Candidate first, size_t most) {
  const cost::Machine& machine = space.start().machine();
  const std::string copies = copies_of(first.list);
  Climb out{first, std::move(first), 0};
  while (out.looks < most && !is_near_its_limit(out.best, machine)) {
    const SearchSpace::Near near = space.first_of_near(out.best.list, most - out.looks);
    out.looks += near.looks;
    const Candidate* least = nullptr;
    for (const Candidate& candidate : near.candidates)
      if (candidate.prediction.is_trusted && copies_of(candidate.list) == copies &&
          (least == nullptr || cycles_of(candidate, machine) < cycles_of(*least, machine)))
        least = &candidate;
    if (least == nullptr || cycles_of(*least, machine) >= kClearly * cycles_of(out.best, machine))
      return out;
    out.best = *least;
  }
  return out;
}

void apply_search(Kernel& kernel) {
  Kernel chosen = copy_of(kernel);
  apply_heuristic(chosen);
  // In groups the model was held against no clock.
  if (works_in_groups(*kernel.caps)) {
    kernel = std::move(chosen);
    return;
  }
  const Candidate first{chosen.applied, predict(chosen, estimate(kernel).bytes)};
  const cost::Machine& machine = kernel.machine();
  // Shorter ones take the time of a launch, whatever their schedule.
  if (cycles_of(first, machine) < machine.wake_cycles || is_near_its_limit(first, machine)) {
    kernel = std::move(chosen);
    return;
  }
  const size_t most = std::min(kMostLooks, kMostNodes / chosen.graph.size());
  const Climb found = climb(SearchSpace(kernel), first, most);
  if (to_string(found.best.list) == to_string(found.first.list)) {
    kernel = std::move(chosen);
    return;
  }
  for (const ScheduleStep& change : found.best.list) apply(kernel, change);
}

}  // namespace plugrad::codegen
