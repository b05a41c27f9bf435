#include "scale/overlap.h"

#include <algorithm>
#include <queue>

namespace plugrad::tools::scale {
namespace {

class Simulation {
 public:
  explicit Simulation(const std::vector<TimedStep>& steps)
      : steps_(steps), missing_(steps.size()), ready_at_(steps.size()), readers_(steps.size()) {
    for (size_t i = 0; i < steps.size(); ++i) {
      missing_[i] = steps[i].needs.size();
      for (const size_t need : steps[i].needs) readers_[need].push_back(i);
      if (steps[i].is_collective) collectives_.push_back(i);
    }
    for (size_t i = 0; i < steps.size(); ++i)
      if (missing_[i] == 0) make_ready(i);
  }

  double run() {
    while (true) {
      if (next_ < collectives_.size() && missing_[collectives_[next_]] == 0)
        run_step(collectives_[next_++], link_free_);
      else if (!kernels_.empty() || !startable_.empty())
        run_step(take_kernel(), device_free_);
      else
        return last_;
    }
  }

 private:
  using Entry = std::pair<double, size_t>;  // ready at, step

  void make_ready(size_t step) {
    if (!steps_[step].is_collective) kernels_.emplace(ready_at_[step], step);
  }

  /// Of the kernels that could start now the first of the plan, else the one that can start first.
  size_t take_kernel() {
    while (!kernels_.empty() && kernels_.top().first <= device_free_) {
      startable_.push(kernels_.top().second);
      kernels_.pop();
    }
    if (startable_.empty()) {
      const size_t step = kernels_.top().second;
      kernels_.pop();
      return step;
    }
    const size_t step = startable_.top();
    startable_.pop();
    return step;
  }

  void run_step(size_t step, double& free) {
    free = std::max(free, ready_at_[step]) + steps_[step].seconds;
    last_ = std::max(last_, free);
    for (const size_t reader : readers_[step]) {
      ready_at_[reader] = std::max(ready_at_[reader], free);
      if (--missing_[reader] == 0) make_ready(reader);
    }
  }

  const std::vector<TimedStep>& steps_;
  std::vector<size_t> missing_;  // steps that have not run, by step
  std::vector<double> ready_at_;
  std::vector<std::vector<size_t>> readers_;
  std::vector<size_t> collectives_;
  size_t next_ = 0;  // of the collectives
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> kernels_;
  std::priority_queue<size_t, std::vector<size_t>, std::greater<>> startable_;
  double device_free_ = 0, link_free_ = 0, last_ = 0;
};

}  // namespace

double ordered_seconds(const std::vector<TimedStep>& steps) {
  std::vector<double> ends(steps.size());  // of collectives
  double now = 0, link_free = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    for (const size_t need : steps[i].needs) now = std::max(now, ends[need]);
    if (steps[i].is_collective)
      ends[i] = link_free = std::max(now, link_free) + steps[i].seconds;
    else
      now += steps[i].seconds;
  }
  return std::max(now, link_free);
}

double overlapped_seconds(const std::vector<TimedStep>& steps) {
  return Simulation(steps).run();
}

}  // namespace plugrad::tools::scale
