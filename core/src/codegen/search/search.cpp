// Hill climbing by the cost model, and beam search by measured times.
// climb() accepts only schedules within the code and prefetch limits of the register tile
// (Prediction::is_trusted). It skips kernels that are bound by arithmetic or bandwidth, which no
// schedule changes, and keeps operand copies and the loops around them, which the model ranks too
// coarsely (1x1 convolutions of ResNet-50, x86-64-v3: predicted 0.7 of the time, measured 1.3).
// beam_search() keeps untried schedules near good ones in a frontier. Each round measures the best
// predicted ones together with the best so far, whose time scales the others, so that frequency
// changes between rounds cancel.
#include "codegen/search/search.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <set>
#include <string>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "codegen/kernel.h"
#include "codegen/passes/passes.h"
#include "codegen/search/heuristic.h"
#include "codegen/transforms/transforms.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

using Kind = ScheduleStep::Kind;

// The model adds a fifth of the resources beside the slowest (cost_cycles.cpp): above this share of
// the time, arithmetic or bytes alone are the slowest resource. Chosen, not measured
// (docs/decisions/schedules-are-climbed-to.md).
constexpr double kBusy = 0.6;

// Of a launch, above which a kernel gets the full schedule at once: its first launches would lose
// what compiling less saves (docs/decisions/schedules-are-frugal-first.md).
constexpr double kFrugalSeconds = 15e-3;

// Cycles of a launch on all threads.
double cycles_of(const Candidate& candidate, const cost::Machine& machine) {
  const Prediction& p = candidate.prediction;
  return std::max(p.cycles.all / p.busy, p.moving(machine, p.busy));
}

bool is_near_its_limit(const Candidate& candidate, const cost::Machine& machine) {
  const Prediction& p = candidate.prediction;
  const double least = std::max(p.cycles.arithmetic / p.busy, p.moving(machine, p.busy));
  return cycles_of(candidate, machine) * kBusy < least;
}

// The steps that copy operands and move the loops around them.
std::string copies_of(const KernelSchedule& list) {
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

// Share of the time that a better schedule may take. Chosen, not measured.
constexpr double kGain = 0.99;
constexpr size_t kMostIrBytes =
    // Bytes of kernel IR, or four times the heuristic's: a limit on compile time. Chosen, not
    // measured.
    96 << 10;

// Time by the predicted ratio to a measured neighbour, damped, because predictions are uncertain.
double predicted_seconds(const Timed& from, const Candidate& to) {
  return from.seconds * std::sqrt(to.cost() / std::max(from.cost, 1.0));
}

class Beam {
 public:
  Beam(const Graph& ast, Id sink, const pgr_device_caps& caps, const Options& options,
       const BeamOptions& beam)
      : ast_(ast),
        sink_(sink),
        caps_(caps),
        options_(options),
        beam_(beam),
        space_(ast, sink, caps, options) {
    begin_ = beam_.now();
  }

  BeamResult run() {
    measure_first();
    uint32_t rounds_without_gain = 0;
    const uint32_t patience = 2 + 3 * beam_.width;
    while (left() > 0 && rounds_without_gain < patience) {
      expand_best();
      const bool gained = measure_round();
      if (was_empty_) break;
      rounds_without_gain = gained ? 0 : rounds_without_gain + 1;
    }
    return result();
  }

 private:
  struct Pending {
    Candidate candidate;
    double predicted;
  };

  double left() const { return beam_.seconds - (beam_.now() - begin_); }

  void measure_first() {
    Timed first;
    Candidate heuristic = space_.chosen();
    first.cost = heuristic.cost();
    first.list = heuristic.list;
    first.code = generate(ast_, sink_, caps_, with(first.list));
    is_new(first);
    const KernelCode* const one[] = {&first.code};
    first.seconds = beam_.measure(one)[0];
    first_ = first;
    population_.push_back(std::move(first));
    ++tried_;
    for (const KernelSchedule& seed : beam_.seeds)
      if (auto candidate = space_.look(seed); candidate && seen_.insert(to_string(seed)).second)
        frontier_.push_back({std::move(*candidate), 0});
    report_progress();
  }

  Options with(const KernelSchedule& list) const {
    Options options = options_;
    options.schedule = &list;
    return options;
  }

  // Whether neither the schedule nor its kernel IR was seen before.
  bool is_new(const Timed& timed) {
    seen_.insert(to_string(timed.list));
    return kernels_.insert(hash128(timed.code.ir).hex()).second;
  }

  void expand_best() {
    const size_t count = std::min<size_t>(beam_.width, population_.size());
    for (size_t i = 0; i < count && left() > 0; ++i) {
      if (!expanded_.insert(to_string(population_[i].list)).second) continue;
      for (Candidate& candidate : space_.near(population_[i].list))
        if (seen_.insert(to_string(candidate.list)).second) {
          const double predicted = predicted_seconds(population_[i], candidate);
          frontier_.push_back({std::move(candidate), predicted});
        }
    }
    std::ranges::stable_sort(frontier_, {}, &Pending::predicted);
  }

  size_t most_ir_bytes() const { return std::max(kMostIrBytes, 4 * first_.code.ir.size()); }

  // Generates the best predicted schedules of the frontier, one batch.
  std::vector<Timed> next_round() {
    std::vector<Timed> round;
    while (round.size() < beam_.batch && !frontier_.empty()) {
      const size_t count = std::min<size_t>(beam_.batch - round.size(), frontier_.size());
      std::vector<Timed> made(count);
      run_tasks(count, [&](uint64_t i) {
        made[i].list = frontier_[i].candidate.list;
        made[i].cost = frontier_[i].candidate.cost();
        try {
          made[i].code = generate(ast_, sink_, caps_, with(made[i].list));
        } catch (const Error& e) {
          log_refusal(e);
        }
      });
      frontier_.erase(frontier_.begin(), frontier_.begin() + static_cast<std::ptrdiff_t>(count));
      for (Timed& timed : made)
        if (!timed.code.ir.empty() && timed.code.ir.size() <= most_ir_bytes() && is_new(timed))
          round.push_back(std::move(timed));
    }
    return round;
  }

  bool measure_round() {
    std::vector<Timed> round = next_round();
    was_empty_ = round.empty();
    if (was_empty_) return false;
    Timed& best = population_[0];
    std::vector<const KernelCode*> codes = {&best.code};
    for (const Timed& timed : round) codes.push_back(&timed.code);
    const std::vector<double> seconds = beam_.measure(codes);
    tried_ += static_cast<uint32_t>(round.size());
    report_progress();  // before acceptance, which stores the number of tried schedules
    const double scale =
        std::isfinite(seconds[0]) && seconds[0] > 0 ? best.seconds / seconds[0] : 1;
    for (size_t i = 0; i < round.size(); ++i) round[i].seconds = seconds[i + 1] * scale;
    const double before = best.seconds;
    add(std::move(round), before);
    report_progress();
    return population_[0].seconds < before * kGain;
  }

  // Measures a new best again beside the old one, so that a lucky sample does not become the
  // reference.
  bool is_faster_again(Timed& timed) {
    const Timed& best = population_[0];
    const KernelCode* const both[] = {&best.code, &timed.code};
    const std::vector<double> seconds = beam_.measure(both);
    if (!(seconds[1] < seconds[0] * kGain)) return false;
    timed.seconds = std::max(timed.seconds, best.seconds * seconds[1] / seconds[0]);
    return timed.seconds < best.seconds * kGain;
  }

  // Only a new best is checked for correctness; others are only starting points.
  void add(std::vector<Timed> round, double best_seconds) {
    std::ranges::stable_sort(round, {}, &Timed::seconds);
    bool has_new_best = false;
    for (Timed& timed : round) {
      if (!std::isfinite(timed.seconds)) continue;
      const bool is_best = timed.seconds < best_seconds * kGain && !has_new_best;
      if (is_best && !(is_faster_again(timed) && beam_.accept(timed))) continue;
      if (!is_best && !has_new_best) timed.seconds = std::max(timed.seconds, best_seconds);
      has_new_best |= is_best;
      population_.push_back(std::move(timed));
    }
    std::ranges::stable_sort(population_, {}, &Timed::seconds);
    if (population_.size() > 4 * beam_.width + 4) population_.resize(4 * beam_.width + 4);
  }

  // Measures the best again beside the heuristic's: the fastest of many samples is biased.
  BeamResult result() {
    Timed& best = population_[0];
    BeamResult out{first_.list, first_.seconds, first_.seconds, tried_, false};
    if (best.list.size() == first_.list.size() && to_string(best.list) == to_string(first_.list))
      return out;
    const KernelCode* const both[] = {&first_.code, &best.code};
    const std::vector<double> seconds = beam_.measure(both);
    if (!(seconds[1] < seconds[0] * kGain)) return out;
    return {best.list, seconds[0], seconds[1], tried_, true};
  }

  void report_progress() const {
    beam_.report({tried_, first_.seconds, population_[0].seconds, std::max(0.0, left())});
  }

  const Graph& ast_;
  Id sink_;
  const pgr_device_caps& caps_;
  const Options& options_;
  const BeamOptions& beam_;
  const SearchSpace space_;
  double begin_ = 0;
  Timed first_;
  std::vector<Timed> population_;  // by time
  std::vector<Pending> frontier_;
  std::set<std::string> seen_, expanded_, kernels_;
  uint32_t tried_ = 0;
  bool was_empty_ = false;
};

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

namespace {

double seconds_of(const Kernel& kernel, const Prediction& prediction) {
  return prediction.seconds(kernel.machine(), kernel.caps->threads);
}

// A kernel that is short even so: the time saved by more code would not pay for compiling it soon.
bool apply_frugal(Kernel& kernel) {
  Kernel chosen = copy_of(kernel);
  chosen.options.frugal = true;
  apply_heuristic(chosen);
  const Prediction found = predict(chosen, estimate(kernel).bytes);
  const double seconds = seconds_of(kernel, found);
  if (!found.is_possible || seconds > kFrugalSeconds) return false;
  kernel = std::move(chosen);
  kernel.seconds = seconds;
  kernel.is_frugal = true;
  return true;
}

// By hill climbing from the heuristic's schedule.
void apply_full(Kernel& kernel) {
  Kernel chosen = copy_of(kernel);
  apply_heuristic(chosen);
  const Candidate first{chosen.applied, predict(chosen, estimate(kernel).bytes)};
  const cost::Machine& machine = kernel.machine();
  chosen.seconds = seconds_of(kernel, first.prediction);
  // Shorter kernels take the time of a launch whatever their schedule.
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
  kernel.seconds = seconds_of(kernel, found.best.prediction);
}

}  // namespace

void apply_search(Kernel& kernel) {
  const bool is_frugal = std::exchange(kernel.options.frugal, false);
  // The model is not validated for devices with lockstep work-items.
  if (works_in_groups(*kernel.caps))
    apply_heuristic(kernel);
  else if (!is_frugal || !apply_frugal(kernel))
    apply_full(kernel);
}

void apply_schedule(Kernel& kernel) {
  if (kernel.options.schedule != nullptr) {
    for (const ScheduleStep& change : *kernel.options.schedule) apply(kernel, change);
  } else if (!kernel.options.no_opt) {
    apply_search(kernel);
  }
}

BeamResult beam_search(const Graph& ast, Id sink, const pgr_device_caps& caps,
                       const Options& options, const BeamOptions& beam) {
  return Beam(ast, sink, caps, options, beam).run();
}

}  // namespace plugrad::codegen
