// Chooses a kernel's schedule: what the heuristics make is where a search by the cost model begins.
#pragma once

#include "codegen/search/search_space.h"

namespace plugrad::codegen {

/// Schedules that one kernel's search predicts at most, and nodes that their kernels have together:
/// 5 us each, 10 ms in all on Zen 4 at 3 GHz (docs/search.md).
inline constexpr size_t kMostLooks = 24, kMostNodes = 2'000;
/// Of the predicted time that another schedule takes at most. Of two schedules of one kernel that
/// are predicted further apart the model orders nearly all as the clock does (docs/performance.md).
inline constexpr double kClearly = 0.9;

struct Climb {
  Candidate first, best;
  size_t looks = 0;
};

/// From `first` to the cheapest schedule near it while one is clearly cheaper and at most `most`
/// were looked at. Follows from the kernel and the device alone.
Climb climb(const SearchSpace& space, Candidate first, size_t most = kMostLooks);

/// Applies what the search finds.
void apply_search(Kernel& kernel);

}  // namespace plugrad::codegen
