/// Training and evaluating: the mode that some layers look at, and how often a network is right.
#pragma once

#include <cstdint>

#include "plugrad/data.h"
#include "plugrad/tensor.h"

namespace plugrad::nn {

/// Whether layers that behave differently in training (BatchNorm, Dropout) do so now, on this
/// thread: true unless a scope says otherwise.
PLUGRAD_API bool is_training();
/// Sets is_training() until the end of the scope.
class PLUGRAD_API TrainingScope {
 public:
  explicit TrainingScope(bool training);
  ~TrainingScope();
  TrainingScope(const TrainingScope&) = delete;
  TrainingScope& operator=(const TrainingScope&) = delete;

 private:
  bool outer_;
};

/// The part of `set` whose label is the largest output of `net`, in [0, 1]; not training.
template <class Net>
double accuracy(Net& net, const data::Dataset& set, int64_t batch_size = 500) {
  TrainingScope evaluation(false);
  int64_t correct = 0;
  for (auto [x, y] : set.batches(batch_size, {.keep_partial = true}))
    correct += (net(x).argmax(-1) == y).sum().template item<int64_t>();
  return static_cast<double>(correct) / static_cast<double>(set.size());
}

}  // namespace plugrad::nn
