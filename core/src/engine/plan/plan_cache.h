// Caches plans on disk, so that another process need not schedule the same graph again.
#pragma once

#include <optional>
#include <string>

#include "base/hash.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// Identifies a plan in any process with this library. `key`: PlanRequest::key(), which has all that a plan
/// depends on, as planning sees numbers and limits of devices alone. Empty while the stages of
/// planning are observed, so that they run.
std::string plan_key_on_disk(const Hash128& key);

/// Looks the plan up in the disk cache; removes an entry that cannot be read. Nothing for an empty
/// key.
std::optional<schedule::Plan> find_plan(const std::string& key);
/// Does nothing for an empty key, and for a plan with kernels of the user or loops, whose numbers
/// differ between processes.
void keep_plan(const std::string& key, const schedule::Plan& plan);

}  // namespace plugrad::engine
