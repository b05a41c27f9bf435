// Splits a plan that runs repeatedly into the steps with the same result in every run, and the
// other steps.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"

namespace plugrad::schedule {

/// Connected steps that depend on constant inputs only.
struct ConstantPart {
  Plan plan;                      ///< its roots are the buffers that the other steps read
  std::vector<uint32_t> steps;    ///< step numbers in the whole plan
  std::vector<uint32_t> buffers;  ///< by buffer of this plan: buffer of the whole plan
  uint64_t input_bytes = 0, root_bytes = 0;
};

struct ConstantSplit {
  std::vector<ConstantPart> parts;
  /// The other steps. Buffers, inputs and roots keep their numbers; further inputs are the roots of
  /// the parts, in order.
  Plan rest;
  std::vector<uint32_t> rest_steps;  ///< step numbers in the whole plan
};

/// `is_constant`: by input. A step is constant if it is a kernel or copy that depends on constant
/// inputs only and writes no root, as each run has its own roots. Parts for which `keeps` is false
/// stay in the rest.
ConstantSplit split_constant_steps(const Plan& plan, const std::vector<bool>& is_constant,
                                   const std::function<bool(const ConstantPart&)>& keeps);

}  // namespace plugrad::schedule
