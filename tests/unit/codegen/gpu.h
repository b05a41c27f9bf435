// Capabilities of devices with workgroups.
#pragma once

#include "run.h"

namespace plugrad::test {

/// Groups of up to `items` work-items along any axis, with local memory.
inline pgr_device_caps with_groups(uint32_t items, uint64_t local_bytes, uint32_t lanes = 1) {
  pgr_device_caps caps = small_cpu(lanes);
  caps.has_local = 1;
  for (uint32_t& size : caps.max_local_size) size = items;
  caps.max_local_total = items;
  caps.local_bytes = local_bytes;
  return caps;
}

/// Typical of GPUs: no vectors, `threads` multiprocessors, 48 KiB of local memory.
inline pgr_device_caps gpu(uint32_t subgroup, uint32_t threads, uint32_t registers) {
  pgr_device_caps caps = with_groups(1024, 48 << 10);
  caps.subgroup_size = subgroup;
  caps.threads = threads;
  caps.vector_registers = registers;
  caps.cache_line_bytes = 128;
  for (uint64_t& most : caps.max_groups) most = 65535;
  return caps;
}

/// Asynchronous copies, and local memory for several groups on a multiprocessor.
inline pgr_device_caps with_async_copies(pgr_device_caps caps) {
  caps.async_copy_bytes = 4 | 8 | 16;
  caps.core_local_bytes = 4 * caps.local_bytes;
  return caps;
}

}  // namespace plugrad::test
