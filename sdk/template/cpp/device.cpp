// SPDX-License-Identifier: 0BSD
// The device's capabilities. The host selects kernels by them, and the suite tests every claim.
#include <unistd.h>

#include <algorithm>

#include "plugin.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "plugrad/sdk/op_info.h"

namespace acme_plugin {
namespace {

// FILL: the memory of your device
uint64_t memory_bytes() {
  return static_cast<uint64_t>(::sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(::sysconf(_SC_PAGE_SIZE));
}

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kAll = 0xfffe;  // every dtype but void
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kInts = bit(PGR_DTYPE_U64 + 1) - bit(PGR_DTYPE_I8);
constexpr uint32_t kFloats =
    bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16) | bit(PGR_DTYPE_F32) | bit(PGR_DTYPE_F64);
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);

struct Claim {
  uint32_t dtypes;
  std::initializer_list<uint32_t> ops;
};

// FILL: the ops that your device computes; the host decomposes the others.
const Claim kClaims[] = {
    {kAll,
     {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE, PGR_OP_VECTOR,
      PGR_OP_LANE, PGR_OP_WHERE, PGR_OP_CAST}},
    {kAll & ~kBool, {PGR_OP_BITCAST}},
    {kIndex, {PGR_OP_GROUP_ID, PGR_OP_LOCAL_ID, PGR_OP_LOOP, PGR_OP_END_LOOP}},
    {kAll, {PGR_OP_ASYNC_COPY}},
    {kBool, {PGR_OP_IF, PGR_OP_END_IF, PGR_OP_BARRIER, PGR_OP_ASYNC_COMMIT, PGR_OP_ASYNC_WAIT}},
    {kInts | kFloats, {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG, PGR_OP_ATOMIC_ADD}},
    {kInts, {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_SHL, PGR_OP_SHR}},
    {kBool | kInts, {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR}},
    {kBool | kInts | kFloats, {PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE}},
    {kFloats,
     {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT, PGR_OP_FMA, PGR_OP_TRUNC, PGR_OP_EXP2, PGR_OP_LOG2,
      PGR_OP_SIN}},
};

pgr_device_caps make_caps() {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  for (const Claim& claim : kClaims)
    for (uint32_t op : claim.ops) caps.op_dtypes[op] = claim.dtypes;
  caps.storage_dtypes = kAll;
  caps.denormals = PGR_DENORMALS_PRESERVE;
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d)
    caps.vector_lanes[d] = 16 / sdk::dtype_size(d);
  caps.subgroup_size = 1;
  caps.has_local = 1;
  caps.threads = 1;  // FILL: number of concurrent groups
  std::ranges::fill(caps.max_local_size, kMostItems);
  caps.max_local_total = kMostItems;
  std::ranges::fill(caps.max_groups, kMostGroups);
  caps.local_bytes = 64 << 10;
  caps.private_bytes = 64 << 10;
  caps.cache_bytes[0] = 32 << 10;  // FILL: the caches of your device
  caps.cache_line_bytes = 64;
  caps.max_buffer_bytes = memory_bytes();
  caps.max_params = 1024;
  caps.buffer_align_bytes = kBufferAlign;
  caps.local_in_cache = 1;  // FILL: 0 if local memory is faster than a cache
  caps.async_copy_bytes = 4 | 8 | 16;
  caps.unified_memory = 1;  // FILL: 0 if the host cannot access the device's memory
  return caps;
}

pgr_status info(pgr_device*, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr("acme-0");  // FILL: a serial number or bus address
    own.name = sdk::to_pgr("ACME");         // FILL: the device's name, arch, vendor and driver
    own.arch = sdk::to_pgr("kernel_ir");
    own.vendor = sdk::to_pgr("ACME");
    own.driver = sdk::to_pgr("0.1.0");
    own.memory_bytes = memory_bytes();
    own.is_software = 1;  // FILL: 0 once it is hardware, and "software": false in manifest.json
    sdk::fill(out, own);
  });
}

pgr_status caps(pgr_device*, pgr_device_caps* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::fill(out, make_caps()); });
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

pgr_status synchronize(pgr_device*, pgr_error*) {
  return PGR_STATUS_OK;  // FILL: wait; without pgr.queue all work is already complete
}

}  // namespace

const pgr_device_api* device_table() {
  static const pgr_device_api table = [] {
    pgr_device_api made;
    PGR_INIT(made, DEVICE_API);
    made.info = info;
    made.caps = caps;
    made.memory_stats = memory_stats;
    made.health = nullptr;  // FILL: report a lost device
    made.synchronize = synchronize;
    return made;
  }();
  return &table;
}

}  // namespace acme_plugin
