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

/// `is_constant`: by input. Constant are kernels and copies that neither read another input, or
/// what depends on one, nor write a root: each run has roots of its own. Steps of users' kernels
/// and of loops stay in the rest, and parts that `keeps` refuses.
ConstantSplit split_constant_steps(const Plan& plan, const std::vector<bool>& is_constant,
                                   const std::function<bool(const ConstantPart&)>& keeps);

}  // namespace plugrad::schedule
