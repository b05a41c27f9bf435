// The values of one call of a plan for several lengths: their memory has room for the largest.
#pragma once

#include <vector>

#include "engine/devices.h"
#include "engine/lengths/length_history.h"

namespace plugrad::engine {

struct LengthCall {
  LengthFamily* family = nullptr;  // until the next lookup
  std::shared_ptr<LengthPlan> plan;
  int64_t length = 0;

  /// The inputs in memory of the plan's shapes, and the length. Errors: OutOfMemoryError.
  std::vector<ValuePtr> with_room(std::vector<ValuePtr> inputs, DeviceTable& devices) const;
  /// The results in memory of their own shapes. Errors: OutOfMemoryError.
  std::vector<ValuePtr> without_room(std::vector<ValuePtr> results) const;
};

}  // namespace plugrad::engine
