#include "engine/plan/options.h"

#include <algorithm>

#include "base/settings.h"
#include "tuning/calibration/machines.h"

namespace plugrad::engine {

Hash128 PlanRequest::key(const Hash128& graph) const {
  const uint64_t words[] = {
      graph.high,
      graph.low,
      default_device | uint64_t{options.threads} << 32 | uint64_t{options.share_kernels} << 63,
      options.max_params | uint64_t{options.subgroup} << 32,
      options.max_buffer_bytes,
      options.lanes | options.cache_bytes << 16,
      options.scratch_bytes,
      hash64(std::as_bytes(std::span(options.replaced))),
      cost::hash_of(options.machine),
      hash64(std::as_bytes(std::span(options.constants))),
      kernels.bits(),
      kernels.lists};
  return hash128(std::as_bytes(std::span(words)));
}

namespace {

/// The positions of a mesh in one process must not decide how their sums are added: their kernels
/// do not join, and layouts and splits follow from no other reader of a value.
void make_independent_of_positions(schedule::Options& options) {
  options.share_kernels = false;
  options.threads = 1;
  options.lanes = 1;
  options.cache_bytes = 0;
}

}  // namespace

schedule::Options plan_options(DeviceTable& devices, std::span<const uint32_t> used) {
  schedule::Options options;
  options.fast_math = settings().fast_math;
  options.lanes = 0;
  if (!used.empty()) options.machine = *tuning::machine_of(devices.open(used[0]));
  uint32_t least_params = UINT32_MAX;
  uint64_t least_scratch = UINT64_MAX;
  for (uint32_t number : used) {
    const pgr_device_caps& caps = devices.open(number).caps();
    options.threads = std::max(options.threads, caps.threads);
    const bool in_step = caps.has_local != 0 && caps.subgroup_size > 1;
    const uint32_t lanes = in_step ? 1 : caps.vector_lanes[static_cast<size_t>(DType::F32)];
    options.cache_bytes = in_step ? 0 : std::max(options.cache_bytes, caps.cache_bytes[1]);
    least_scratch = std::min(least_scratch, in_step ? 0 : caps.private_bytes);
    options.lanes = options.lanes == 0 ? lanes : std::min(options.lanes, lanes);
    if (caps.has_local != 0) options.subgroup = std::max(options.subgroup, caps.subgroup_size);
    if (caps.max_params != 0) least_params = std::min(least_params, caps.max_params);
    if (caps.max_buffer_bytes != 0)
      options.max_buffer_bytes = std::min(options.max_buffer_bytes, caps.max_buffer_bytes);
  }
  // Without optimisation, a kernel would recompute the rows for each element that uses them.
  if (least_scratch != UINT64_MAX && !settings().noopt) options.scratch_bytes = least_scratch;
  if (least_params != UINT32_MAX) options.max_params = least_params;
  if (settings().deterministic && devices.has_meshes()) make_independent_of_positions(options);
  return options;
}

}  // namespace plugrad::engine
