// Compares the cost model's predictions for a ready kernel's schedule with other schedules.
#pragma once

#include <span>
#include <vector>

#include "codegen/search/search.h"
#include "engine/report.h"

namespace plugrad::engine {

struct Choice {
  codegen::Candidate own;
  codegen::Candidate plain;                 // the empty schedule
  std::vector<codegen::Candidate> nearest;  // one change away, by predicted cost
  size_t looked_at = 0;                     // number of legal schedules one change away
};

/// Errors: User for a user-written kernel, which has no schedule.
codegen::Candidate prediction_of(const KernelReport& report);
/// The predictions of other schedules, without those that are not legal. Errors: as
/// prediction_of().
std::vector<codegen::Candidate> predictions_of(const KernelReport& report,
                                               std::span<const codegen::KernelSchedule> lists);
/// At most `most` schedules in `nearest`. Errors: as prediction_of().
Choice choice_of(const KernelReport& report, size_t most);

}  // namespace plugrad::engine
