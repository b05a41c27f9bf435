/// Learning-rate schedules: functions from the number of a step, counted from 0, to its rate. To
/// resume training, the number of the step is enough.
///
///   auto rate = optim::warm_up(optim::cosine_rate(1e-3, 900), 100);
///   for (int64_t step = 0; step < 1000; ++step) {
///     opt.set_learning_rate(rate(step));
///     …
///   }
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "plugrad/nn/state.h"

namespace plugrad::optim {

class PLUGRAD_API Schedule {
 public:
  explicit Schedule(std::function<double(int64_t)> rate) : rate_(std::move(rate)) {}
  /// Errors: User for a negative step.
  double operator()(int64_t step) const;

 private:
  std::function<double(int64_t)> rate_;
};

// Errors of all functions: User for a rate or factor that is negative or not finite, or a count
// that is not positive.

/// lr at every step.
PLUGRAD_API Schedule constant_rate(double lr);
/// lr times `factor` after every `every` steps.
PLUGRAD_API Schedule step_rate(double lr, int64_t every, double factor = 0.1);
/// lr, multiplied by `factor` at each of these steps.
PLUGRAD_API Schedule multi_step_rate(double lr, std::vector<int64_t> steps, double factor = 0.1);
/// lr times `factor` after every step.
PLUGRAD_API Schedule exponential_rate(double lr, double factor);
/// Linear from `from` to `to` over `steps` steps, then `to`.
PLUGRAD_API Schedule linear_rate(double from, double to, int64_t steps);
/// From `lr` down to `floor` along half a cosine, then `floor`. Loshchilov and Hutter 2017.
PLUGRAD_API Schedule cosine_rate(double lr, int64_t steps, double floor = 0.0);
/// Rises linearly over `steps` steps from `start` times the first rate of `then` to that rate, then
/// continues with `then`.
PLUGRAD_API Schedule warm_up(Schedule then, int64_t steps, double start = 0.1);

struct OneCycleOptions {
  double rising = 0.3;        ///< fraction of the steps before the peak
  double start_divisor = 25;  ///< the first rate is the peak divided by this
  double end_divisor = 1e4;   ///< the last rate is the first divided by this
};
/// Rises to `peak` and falls to the last rate, both along half a cosine. Smith and Topin 2018.
PLUGRAD_API Schedule one_cycle_rate(double peak, int64_t steps, const OneCycleOptions& = {});

struct PlateauOptions {
  double factor = 0.1;
  int64_t patience = 10;    ///< checks without improvement that are tolerated
  double threshold = 1e-4;  ///< least relative improvement over the best value
  int64_t cooldown = 0;     ///< checks after a reduction that are not counted
  double min_lr = 0.0;
  bool larger_is_better = false;  ///< for measures such as accuracy
};
/// Multiplies the rate by `factor` when a checked value stops improving. The state, with the rate,
/// is saved and loaded like a module's.
class PLUGRAD_API ReduceOnPlateau {
 public:
  explicit ReduceOnPlateau(double lr, const PlateauOptions& options = {});
  /// Records a value (NaN is no improvement); returns whether the rate was reduced.
  bool check(double value);
  double rate() const;
  void visit_fields(nn::StateVisitor& visitor) const { visitor.visit("state", state_); }

 private:
  PlateauOptions options_;
  Tensor state_;  // f64: rate, best value, checks without improvement, checks of cooldown left
};

}  // namespace plugrad::optim
