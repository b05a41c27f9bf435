#include "runtime/checks/compare/judge.h"

#include <algorithm>

#include "runtime/checks/compare/rounding.h"
#include "runtime/checks/compare/values.h"

namespace plugrad::runtime {

std::optional<Difference> judge(const KernelLines& kernel, const LaunchData& data,
                                const pgr_device_caps& caps, Device& other, const HostMemory& got,
                                const HostMemory& expected, bool is_partial, uint32_t* more_runs) {
  Tolerance tolerance;
  tolerance.is_partial = is_partial;
  tolerance.any_zero = std::ranges::any_of(kernel.lines, [](const KernelLines::Line& line) {
    return line.op == PGR_OP_MAX && is_float(line.dtype);
  });
  tolerance.flushes =
      caps.denormals != PGR_DENORMALS_PRESERVE || other.caps().denormals != PGR_DENORMALS_PRESERVE;
  const auto found = first_difference(kernel, data, got, expected, {}, tolerance);
  if (!found) return found;
  const std::vector<double> errors = allowed_errors(kernel, caps, other.caps());
  if (std::ranges::all_of(errors, [](double ulps) { return ulps == 0; })) return found;
  if (more_runs) *more_runs = kRoundingVariants;
  std::vector<HostMemory> variants;
  for (uint32_t i = 0; i < kRoundingVariants; ++i)
    variants.push_back(run_on(other, with_errors(kernel, errors, i), data, false));
  tolerance.is_rounded = tolerance.any_zero = true;
  return first_difference(kernel, data, got, expected, variants, tolerance);
}

}  // namespace plugrad::runtime
