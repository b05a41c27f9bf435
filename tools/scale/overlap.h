// When steps end if collectives run beside kernels.
#pragma once

#include <cstddef>
#include <vector>

namespace plugrad::tools::scale {

struct TimedStep {
  double seconds = 0;
  bool is_collective = false;
  std::vector<size_t> needs;  ///< earlier steps whose results it reads
};

/// Seconds until all steps of a plan have ended in its order: kernels run one after another,
/// collectives beside them from their place on, and a step waits for the collectives that it needs.
double ordered_seconds(const std::vector<TimedStep>& steps);

/// Seconds until all steps have ended. Collectives run one after another in their order, each as
/// soon as it can; beside them kernels run one at a time, first the one that can start first.
double overlapped_seconds(const std::vector<TimedStep>& steps);

}  // namespace plugrad::tools::scale
