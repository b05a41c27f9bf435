// Describes the device.
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "work_queue.h"

namespace plugrad::reference {
namespace {

uint64_t memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

// Small limits, so that small kernels already reach them.
void limit_as_gpu(pgr_device_caps& caps) {
  caps.subgroup_size = 8;
  caps.threads = 2;
  caps.vector_registers = 32;
  if (caps.has_local) {
    const uint32_t most[] = {64, 64, 16};
    std::copy(std::begin(most), std::end(most), caps.max_local_size);
    caps.max_local_total = 64;
    caps.local_bytes = 4 << 10;
    caps.core_local_bytes = 16 << 10;
    caps.local_banks = 8;
    caps.local_bank_bytes = 4;
    caps.local_in_cache = 0;
  }
  for (uint64_t& count : caps.max_groups) count = 65535;
  caps.private_bytes = 4 << 10;
  caps.max_params = 16;
  caps.max_buffer_bytes = uint64_t{128} << 20;
}

pgr_device_caps make_caps(const Claims& claims) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (uint32_t op = 0; op < 64; ++op) caps.op_dtypes[op] = claims.dtypes_of(op);
  caps.storage_dtypes = claims.op_dtypes[PGR_OP_LOAD] & claims.op_dtypes[PGR_OP_STORE];
  caps.denormals = PGR_DENORMALS_PRESERVE;
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d)
    caps.vector_lanes[d] = std::max(1u, claims.lanes_bytes / sdk::dtype_size(d));
  caps.vector_registers = 16;
  caps.subgroup_size = 1;
  caps.has_local = claims.has_local;
  caps.threads = 1;
  for (uint32_t& size : caps.max_local_size) size = most_items(claims);
  caps.max_local_total = most_items(claims);
  for (uint64_t& count : caps.max_groups) count = kMostGroups;
  caps.local_bytes = claims.has_local ? 64 << 10 : 0;
  caps.private_bytes = 64 << 10;
  caps.cache_bytes[0] = 32 << 10;
  caps.cache_bytes[1] = caps.cache_bytes[2] = 1 << 20;
  caps.cache_line_bytes = 64;
  caps.max_buffer_bytes = memory_bytes();
  caps.max_params = 1024;
  caps.buffer_align_bytes = kBufferAlign;
  caps.unified_memory = 1;
  caps.local_in_cache = 1;
  caps.async_copy_bytes = claims.op_dtypes[PGR_OP_ASYNC_COPY] ? 4 | 8 | 16 : 0;
  if (claims.is_gpu) limit_as_gpu(caps);
  return caps;
}

pgr_status device_info(pgr_device*, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr("reference-0");
    own.name = sdk::to_pgr("Kernel IR interpreter");
    own.arch = sdk::to_pgr("kernel_ir");
    own.vendor = sdk::to_pgr("plugrad");
    own.driver = sdk::to_pgr("1.0.0");
    own.memory_bytes = memory_bytes();
    own.is_software = 1;
    sdk::fill(out, own);
  });
}

pgr_status caps(pgr_device* device, pgr_device_caps* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_device_caps own = make_caps(device->claims);
    own.tensor_cores = device->tensor_cores.data();
    own.tensor_core_count = static_cast<uint32_t>(device->tensor_cores.size());
    own.tensor_core_stride = sizeof(pgr_tensor_core);
    sdk::fill(out, own);
  });
}

pgr_status memory_stats(pgr_device* device, pgr_memory_stats* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_memory_stats own;
    PGR_INIT(own, MEMORY_STATS);
    own.total_bytes = memory_bytes();
    own.used_bytes = device->used_bytes.load();
    own.free_bytes = own.total_bytes > own.used_bytes ? own.total_bytes - own.used_bytes : 0;
    sdk::fill(out, own);
  });
}

pgr_status synchronize(pgr_device* device, pgr_error* error) {
  return sdk::guard(error, [&] { finish_all(*device); });
}

}  // namespace

const pgr_device_api* device_table() {
  static const pgr_device_api table = [] {
    pgr_device_api made;
    PGR_INIT(made, DEVICE_API);
    made.info = device_info;
    made.caps = caps;
    made.memory_stats = memory_stats;
    made.synchronize = synchronize;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::reference
