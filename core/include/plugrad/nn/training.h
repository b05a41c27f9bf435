/// Training mode of layers, and the accuracy of a classifier.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugrad/data.h"
#include "plugrad/tensor.h"

namespace plugrad::nn {

/// The mode of this thread for layers that differ between training and evaluation (BatchNorm,
/// Dropout): true unless a TrainingScope changes it.
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

/// The fraction of `set` whose label is the argmax of `net`, in [0, 1]. Runs in evaluation mode.
/// The last batch may be smaller.
template <class Net>
double accuracy(Net& net, const data::Dataset& set, int64_t batch_size = 500) {
  TrainingScope evaluation(false);
  int64_t correct = 0;
  for (auto [x, y] : set.batches(std::min(batch_size, set.size()), {.keep_partial = true}))
    correct += (net(x).argmax(-1) == y).sum().template item<int64_t>();
  return static_cast<double>(correct) / static_cast<double>(set.size());
}

}  // namespace plugrad::nn
