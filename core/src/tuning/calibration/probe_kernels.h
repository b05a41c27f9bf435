// Generates the kernels that measure a machine, as kernel IR: the same for every device.
#pragma once

#include <cstddef>
#include <vector>

#include "cost/calibrate.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::tuning {

/// Buffers: results, elements; scalars: blocks, iterations. Groups are independent.
struct ProbeKernel {
  std::vector<std::byte> ir;
  double work_of_turn = 0;   // vectors or cycles in an iteration, or in one of its blocks
  int64_t result_count = 0;  // elements of a group, 4 bytes each
  int64_t block_count = 0;   // elements of a block
};
ProbeKernel write_probe(cost::Probe::Kind kind, const char* name, uint64_t groups,
                        const pgr_device_caps& caps);

/// Number of groups for which the first buffer has room.
inline constexpr int64_t kMostProbeGroups = 4096;
/// Bytes of the second buffer.
inline constexpr int64_t kProbeBytes = int64_t{256} << 20;

}  // namespace plugrad::tuning
