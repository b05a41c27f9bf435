// The frontier holds every list that is near a good one and was not tried. Each round measures the
// most promising of it beside the best so far, whose time is what others are divided by, so that a
// machine that changes its speed between rounds changes nothing.
#include "codegen/search/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "base/hash.h"
#include "base/thread_pool.h"
#include "plugrad/error.h"

namespace plugrad::codegen {
namespace {

constexpr double kGain = 0.99;  // of the time that a better one may take at most
constexpr size_t kMostIrBytes =
    96 << 10;  // or four times the heuristic's: larger kernels compile for seconds

// The predicted cost relative to a neighbour whose time is known; models are never as sure as they
// look.
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
    tell();
  }

  Options with(const KernelSchedule& list) const {
    Options options = options_;
    options.schedule = &list;
    return options;
  }

  // Whether neither the list nor what it becomes was there before.
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

  // Generates the most promising, as many as a round takes.
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
    tell();  // before anything is accepted, which is kept with the number tried
    const double scale =
        std::isfinite(seconds[0]) && seconds[0] > 0 ? best.seconds / seconds[0] : 1;
    for (size_t i = 0; i < round.size(); ++i) round[i].seconds = seconds[i + 1] * scale;
    const double before = best.seconds;
    add(std::move(round), before);
    tell();
    return population_[0].seconds < before * kGain;
  }

  // Beside the best so far once more: luck would be the measure of all that comes later.
  bool is_faster_again(Timed& timed) {
    const Timed& best = population_[0];
    const KernelCode* const both[] = {&best.code, &timed.code};
    const std::vector<double> seconds = beam_.measure(both);
    if (!(seconds[1] < seconds[0] * kGain)) return false;
    timed.seconds = std::max(timed.seconds, best.seconds * seconds[1] / seconds[0]);
    return timed.seconds < best.seconds * kGain;
  }

  // Only what is faster than all before has to be right to stay: the others only lead on.
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

  // Once more beside the heuristic's: of many that were timed, the fastest was also the luckiest.
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

  void tell() const {
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

BeamResult beam_search(const Graph& ast, Id sink, const pgr_device_caps& caps,
                       const Options& options, const BeamOptions& beam) {
  return Beam(ast, sink, caps, options, beam).run();
}

}  // namespace plugrad::codegen
