// Learning-rate schedules: closed forms of the step's number.
#include "plugrad/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/check.h"

namespace plugrad::optim {
namespace {

void require_rate(const char* schedule, double lr) {
  require(std::isfinite(lr) && lr >= 0, "[{}] the rate {} is not a number from 0 on", schedule, lr);
}

void require_factor(const char* schedule, double factor) {
  require(std::isfinite(factor) && factor >= 0, "[{}] the factor {} is not a number from 0 on",
          schedule, factor);
}

void require_count(const char* schedule, int64_t count) {
  require(count > 0, "[{}] {} steps; there must be one at least", schedule, count);
}

// Half a cosine from `from` to `to`, for `part` from 0 to 1.
double half_cosine(double from, double to, double part) {
  return to + (from - to) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

double part_of(int64_t step, int64_t steps) {
  return static_cast<double>(std::min(step, steps)) / static_cast<double>(steps);
}

}  // namespace

double Schedule::operator()(int64_t step) const {
  require(step >= 0, "[Schedule] step {}; steps count from 0", step);
  return rate_(step);
}

Schedule constant_rate(double lr) {
  require_rate("constant_rate", lr);
  return Schedule([=](int64_t) { return lr; });
}

Schedule step_rate(double lr, int64_t every, double factor) {
  require_rate("step_rate", lr);
  require_count("step_rate", every);
  require_factor("step_rate", factor);
  return Schedule([=](int64_t step) { return lr * std::pow(factor, step / every); });
}

Schedule multi_step_rate(double lr, std::vector<int64_t> steps, double factor) {
  require_rate("multi_step_rate", lr);
  require_factor("multi_step_rate", factor);
  std::ranges::sort(steps);
  return Schedule([=, steps = std::move(steps)](int64_t step) {
    const auto passed = std::ranges::upper_bound(steps, step) - steps.begin();
    return lr * std::pow(factor, passed);
  });
}

Schedule exponential_rate(double lr, double factor) {
  require_rate("exponential_rate", lr);
  require_factor("exponential_rate", factor);
  return Schedule([=](int64_t step) { return lr * std::pow(factor, step); });
}

Schedule linear_rate(double from, double to, int64_t steps) {
  require_rate("linear_rate", from);
  require_rate("linear_rate", to);
  require_count("linear_rate", steps);
  return Schedule([=](int64_t step) { return from + (to - from) * part_of(step, steps); });
}

Schedule cosine_rate(double lr, int64_t steps, double floor) {
  require_rate("cosine_rate", lr);
  require_rate("cosine_rate", floor);
  require_count("cosine_rate", steps);
  return Schedule([=](int64_t step) { return half_cosine(lr, floor, part_of(step, steps)); });
}

Schedule warm_up(Schedule then, int64_t steps, double start) {
  require_count("warm_up", steps);
  require_factor("warm_up", start);
  return Schedule([=, then = std::move(then)](int64_t step) {
    if (step >= steps) return then(step - steps);
    return then(0) * (start + (1 - start) * part_of(step, steps));
  });
}

Schedule one_cycle_rate(double peak, int64_t steps, const OneCycleOptions& options) {
  require_rate("one_cycle_rate", peak);
  require_count("one_cycle_rate", steps);
  require(options.rising >= 0 && options.rising <= 1,
          "[one_cycle_rate] the rising part {} is not in [0, 1]", options.rising);
  require(options.start_divisor > 0 && options.end_divisor > 0,
          "[one_cycle_rate] the divisors are {} and {}; both must be positive",
          options.start_divisor, options.end_divisor);
  const double first = peak / options.start_divisor, last = first / options.end_divisor;
  const double top = options.rising * static_cast<double>(steps) - 1;
  const auto end = static_cast<double>(steps - 1);
  return Schedule([=](int64_t step) {
    const double at = std::min(static_cast<double>(step), end);
    if (at <= top) return half_cosine(first, peak, top > 0 ? at / top : 1.0);
    return half_cosine(peak, last, end > top ? (at - top) / (end - top) : 1.0);
  });
}

ReduceOnPlateau::ReduceOnPlateau(double lr, const PlateauOptions& options) : options_(options) {
  require_rate("ReduceOnPlateau", lr);
  require_rate("ReduceOnPlateau", options.min_lr);
  require(options.factor > 0 && options.factor < 1,
          "[ReduceOnPlateau] the factor {} is not between 0 and 1", options.factor);
  require(options.patience >= 0 && options.cooldown >= 0 && options.threshold >= 0,
          "[ReduceOnPlateau] patience {}, cooldown {} and threshold {} must be 0 or more",
          options.patience, options.cooldown, options.threshold);
  const double worst = std::numeric_limits<double>::infinity();
  state_ = Tensor::from<double>({lr, options.larger_is_better ? -worst : worst, 0, 0});
}

double ReduceOnPlateau::rate() const {
  return state_.to_vector<double>()[0];
}

bool ReduceOnPlateau::check(double value) {
  std::vector<double> state = state_.to_vector<double>();
  double &rate = state[0], &best = state[1], &bad = state[2], &cooldown = state[3];
  const bool better = options_.larger_is_better ? value > best * (1 + options_.threshold)
                                                : value < best * (1 - options_.threshold);
  if (better) best = value;
  bad = better ? 0 : bad + 1;
  if (cooldown > 0) {
    --cooldown;
    bad = 0;
  }
  const double before = rate;
  if (bad > static_cast<double>(options_.patience)) {
    rate = std::max(rate * options_.factor, options_.min_lr);
    cooldown = static_cast<double>(options_.cooldown);
    bad = 0;
  }
  const bool reduced = rate < before;
  state_.assign(Tensor::from(state)).realize();
  return reduced;
}

}  // namespace plugrad::optim
