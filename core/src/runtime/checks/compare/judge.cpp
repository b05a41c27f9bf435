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
  tolerance.is_rounded = tolerance.any_zero = true;
  std::vector<HostMemory> variants;
  std::optional<Difference> beyond;
  for (const uint32_t count : {kRoundingVariants, kMostRoundingVariants}) {
    for (auto i = static_cast<uint32_t>(variants.size()); i < count; ++i)
      variants.push_back(run_on(other, with_errors(kernel, errors, i), data, false));
    if (more_runs) *more_runs = count;
    beyond = first_difference(kernel, data, got, expected, variants, tolerance);
    if (!beyond) break;
  }
  return beyond;
}

}  // namespace plugrad::runtime
