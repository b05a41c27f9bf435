// Compares the cost model's predictions for a ready kernel's schedule with other schedules.
#pragma once

#include <vector>

#include "codegen/search/search_space.h"
#include "engine/report.h"

namespace plugrad::engine {

struct Choice {
  codegen::Prospect own;
  codegen::Prospect plain;                 // the empty schedule
  std::vector<codegen::Prospect> nearest;  // one change away, by predicted cost
  size_t looked_at = 0;                    // number of legal schedules one change away
};

/// Errors: User for a user-written kernel, which has no schedule.
codegen::Prospect prediction_of(const KernelReport& report);
/// At most `most` schedules in `nearest`. Errors: as prediction_of().
Choice choice_of(const KernelReport& report, size_t most);

}  // namespace plugrad::engine
