// The predictions of the cost model for a kernel that is ready: its schedule beside others.
#pragma once

#include <vector>

#include "codegen/search/actions.h"
#include "engine/report.h"

namespace plugrad::engine {

struct Choice {
  codegen::Prospect own;
  codegen::Prospect plain;                 // without any change
  std::vector<codegen::Prospect> nearest;  // one change away, by predicted cost
  size_t looked_at = 0;                    // schedules one change away that are legal
};

/// Errors: User for a kernel that was written by hand: it has no schedule.
codegen::Prospect prediction_of(const KernelReport& report);
/// `most` schedules at most in `nearest`. Errors: the same.
Choice choice_of(const KernelReport& report, size_t most);

}  // namespace plugrad::engine
