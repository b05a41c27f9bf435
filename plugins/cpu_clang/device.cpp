// Describes the device.
#include "plugrad/plugin_api/device.h"

#include "plugin.h"
#include "plugrad/sdk/guard.h"
#include "plugrad/sdk/private_arrays.h"

namespace plugrad::cpu_clang {
namespace {

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kInts = bit(PGR_DTYPE_I8) | bit(PGR_DTYPE_U8) | bit(PGR_DTYPE_I16) |
                           bit(PGR_DTYPE_U16) | bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32) |
                           bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);
constexpr uint32_t kFloats = bit(PGR_DTYPE_F32) | bit(PGR_DTYPE_F64);
constexpr uint32_t kHalves = bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16);
constexpr uint32_t kStorage = kBool | kInts | kFloats | kHalves;
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);

// bf16 is only moved and cast, as is f16 on processors without f16 arithmetic. Kernels never call
// libm.
void claim_ops(const CpuFacts& cpu, uint32_t* ops) {
  for (uint32_t op : {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE,
                      PGR_OP_VECTOR, PGR_OP_LANE, PGR_OP_WHERE})
    ops[op] = kStorage;
  for (uint32_t op : {PGR_OP_GROUP_ID, PGR_OP_LOOP, PGR_OP_END_LOOP}) ops[op] = kIndex;
  for (uint32_t op : {PGR_OP_IF, PGR_OP_END_IF}) ops[op] = kBool;
  for (uint32_t op : {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG, PGR_OP_ATOMIC_ADD})
    ops[op] = kInts | kFloats;
  for (uint32_t op : {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_SHL, PGR_OP_SHR}) ops[op] = kInts;
  for (uint32_t op : {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR}) ops[op] = kBool | kInts;
  for (uint32_t op : {PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE})
    ops[op] = kBool | kInts | kFloats;
  for (uint32_t op : {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT}) ops[op] = kFloats;
  ops[PGR_OP_FMA] = cpu.has_fma ? kFloats : 0;
  ops[PGR_OP_TRUNC] = cpu.has_sse41 ? kFloats : 0;
  ops[PGR_OP_CAST] =
      kBool | kInts | kFloats | bit(PGR_DTYPE_BF16) | (cpu.has_f16c ? bit(PGR_DTYPE_F16) : 0);
  ops[PGR_OP_BITCAST] = kStorage & ~kBool;
  if (!cpu.has_f16_math) return;
  for (uint32_t op :
       {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG, PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ,
        PGR_OP_CMPNE, PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT, PGR_OP_FMA, PGR_OP_TRUNC})
    ops[op] |= bit(PGR_DTYPE_F16);
}

pgr_device_caps make_caps(const pgr_device& device) {
  const pgr_plugin& plugin = *device.plugin;
  const CpuFacts& cpu = device.cpu;
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  claim_ops(cpu, caps.op_dtypes);
  caps.storage_dtypes = kStorage;
  caps.denormals = PGR_DENORMALS_PRESERVE;
  caps.contract_supported = cpu.has_fma;
  const uint32_t sizes[] = {0, 1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 1, 1};
  for (uint32_t d = 1; d < PGR_DTYPE_COUNT; ++d) caps.vector_lanes[d] = cpu.vector_bytes / sizes[d];
  caps.vector_registers = cpu.vector_registers;
  caps.subgroup_size = 1;
  caps.threads = plugin.host->thread_count(plugin.host->host);
  caps.max_local_total = 1;
  for (uint32_t& size : caps.max_local_size) size = 1;
  for (uint64_t& count : caps.max_groups) count = kMostGroups;
  caps.private_bytes = sdk::private_bytes_of_cpu(cpu.cache_bytes[1]);
  for (int level = 0; level < 3; ++level) caps.cache_bytes[level] = cpu.cache_bytes[level];
  caps.cache_line_bytes = 64;
  caps.max_buffer_bytes = cpu.memory_bytes;
  caps.max_params = 1024;
  caps.buffer_align_bytes = kBufferAlign;
  caps.unified_memory = 1;
  return caps;
}

pgr_status device_info(pgr_device* device, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const CpuFacts& cpu = device->cpu;
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr("cpu-0");
    own.name = sdk::to_pgr(cpu.model);
    own.arch = sdk::to_pgr(cpu.arch);
    own.vendor = sdk::to_pgr(cpu.vendor);
    own.driver = sdk::to_pgr("Clang " PLUGRAD_COMPILER_VERSION);
    own.memory_bytes = cpu.memory_bytes;
    sdk::fill(out, own);
  });
}

pgr_status caps(pgr_device* device, pgr_device_caps* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::fill(out, make_caps(*device)); });
}

pgr_status memory_stats(pgr_device* device, pgr_memory_stats* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    pgr_memory_stats own;
    PGR_INIT(own, MEMORY_STATS);
    own.total_bytes = device->cpu.memory_bytes;
    own.used_bytes = device->used_bytes.load();
    own.free_bytes = own.total_bytes > own.used_bytes ? own.total_bytes - own.used_bytes : 0;
    sdk::fill(out, own);
  });
}

// Launches and copies are synchronous, so that nothing is pending.
pgr_status synchronize(pgr_device*, pgr_error*) {
  return PGR_STATUS_OK;
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

}  // namespace plugrad::cpu_clang
