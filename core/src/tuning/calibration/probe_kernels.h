// The kernels that tell what a machine can do, as kernel IR: the same for every device.
#pragma once

#include <cstddef>
#include <vector>

#include "cost/calibrate.h"
#include "plugrad/plugin_api/device.h"

namespace plugrad::tuning {

/// Buffers: results, elements; scalars: blocks, turns. Each group works alone.
struct ProbeKernel {
  std::vector<std::byte> ir;
  double work_of_turn = 0;   // vectors or cycles of a turn, or of a block of it
  int64_t result_count = 0;  // elements of a group, in 4 bytes each
  int64_t block_count = 0;   // elements of a block
};
ProbeKernel write_probe(cost::Probe::Kind kind, const char* name, uint64_t groups,
                        const pgr_device_caps& caps);

/// The first buffer has room for so many groups.
inline constexpr int64_t kMostProbeGroups = 4096;
/// Bytes of the second buffer.
inline constexpr int64_t kProbeBytes = int64_t{256} << 20;

}  // namespace plugrad::tuning
