// Splits a plan that runs again and again: steps that compute the same every time, and the rest.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "schedule/schedule.h"

namespace plugrad::schedule {

/// Steps that depend on each other and, beside that, on constant inputs only.
struct ConstantPart {
  Plan plan;                      ///< its roots are what the rest reads of it
  std::vector<uint32_t> steps;    ///< of the whole plan
  std::vector<uint32_t> buffers;  ///< of the whole plan, by buffer of this one
  uint64_t input_bytes = 0, root_bytes = 0;
};

struct ConstantSplit {
  std::vector<ConstantPart> parts;
  /// The other steps. Buffers, inputs and roots keep their numbers; further inputs are the roots of
  /// the parts, in order.
  Plan rest;
  std::vector<uint32_t> rest_steps;  ///< of the whole plan
};

/// `is_constant`: by input. Constant are kernels and copies that neither read another input, or
/// what depends on one, nor write a root: each run has roots of its own. Steps of users' kernels
/// and of loops stay in the rest, and parts that `keeps` refuses.
ConstantSplit split_constant_steps(const Plan& plan, const std::vector<bool>& is_constant,
                                   const std::function<bool(const ConstantPart&)>& keeps);

}  // namespace plugrad::schedule
