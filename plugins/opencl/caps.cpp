// Derives the device's claims from the driver's information. A device of type CPU describes the
// host's processor: groups of one work-item, vectors, caches. Other devices describe work-items in
// lockstep.
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "plugin.h"
#include "plugrad/sdk/private_arrays.h"

namespace plugrad::opencl {
namespace {

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kInts = bit(PGR_DTYPE_I8) | bit(PGR_DTYPE_U8) | bit(PGR_DTYPE_I16) |
                           bit(PGR_DTYPE_U16) | bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32) |
                           bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);
constexpr uint32_t kHalves = bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16);
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);
constexpr uint32_t kWords = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32) | bit(PGR_DTYPE_F32);
constexpr uint32_t kLongs = bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);

void claim_memory(uint32_t storage, uint32_t* ops) {
  for (uint32_t op : {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE,
                      PGR_OP_VECTOR, PGR_OP_LANE, PGR_OP_WHERE})
    ops[op] = storage;
  for (uint32_t op : {PGR_OP_GROUP_ID, PGR_OP_LOCAL_ID, PGR_OP_LOOP, PGR_OP_END_LOOP})
    ops[op] = kIndex;
  for (uint32_t op : {PGR_OP_IF, PGR_OP_END_IF}) ops[op] = kBool;
  ops[PGR_OP_BARRIER] = kBool;
}

// f64 if the device has it. f16 arithmetic only if the device has the type; f16 and bf16 can always
// be moved and cast.
void claim_arithmetic(const DeviceFacts& facts, uint32_t* ops) {
  const uint32_t f64 = facts.has_fp64 ? bit(PGR_DTYPE_F64) : 0;
  const uint32_t floats = bit(PGR_DTYPE_F32) | f64 | (facts.has_fp16 ? bit(PGR_DTYPE_F16) : 0);
  for (uint32_t op : {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG}) ops[op] = kInts | floats;
  for (uint32_t op : {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_SHL, PGR_OP_SHR}) ops[op] = kInts;
  for (uint32_t op : {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR}) ops[op] = kBool | kInts;
  for (uint32_t op : {PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE})
    ops[op] = kBool | kInts | floats;
  for (uint32_t op : {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT, PGR_OP_TRUNC}) ops[op] = floats;
  ops[PGR_OP_FMA] = facts.has_fma ? floats : 0;
  ops[PGR_OP_ATOMIC_ADD] = kWords | (facts.has_int64_atomics ? kLongs | f64 : 0);
}

uint32_t power_of_two(uint32_t lanes) {
  return std::bit_floor(std::clamp(lanes, 1u, 16u));
}

void describe_vectors(const DeviceFacts& facts, pgr_device_caps& caps) {
  const uint32_t by_dtype[16] = {0,
                                 facts.lanes_i8,
                                 facts.lanes_i8,
                                 facts.lanes_i8,
                                 facts.lanes_i16,
                                 facts.lanes_i16,
                                 facts.lanes_i32,
                                 facts.lanes_i32,
                                 facts.lanes_i64,
                                 facts.lanes_i64,
                                 facts.lanes_i16,
                                 facts.lanes_i16,
                                 facts.lanes_f32,
                                 facts.lanes_f64,
                                 facts.lanes_i8,
                                 facts.lanes_i8};
  for (uint32_t d = 1; d < PGR_DTYPE_COUNT; ++d) caps.vector_lanes[d] = power_of_two(by_dtype[d]);
}

uint64_t ask_system(int what) {
  const long value = ::sysconf(what);
  return value > 0 ? static_cast<uint64_t>(value) : 0;
}

void describe_cpu(const DeviceFacts& facts, pgr_device_caps& caps) {
  caps.vector_registers = facts.lanes_f32 >= 16 ? 32 : 16;
  caps.cache_bytes[0] = ask_system(_SC_LEVEL1_DCACHE_SIZE);
  caps.cache_bytes[1] = ask_system(_SC_LEVEL2_CACHE_SIZE);
  caps.cache_bytes[2] = ask_system(_SC_LEVEL3_CACHE_SIZE);
  caps.private_bytes = sdk::private_bytes_of_cpu(caps.cache_bytes[1]);
}

void describe_gpu(const DeviceFacts& facts, pgr_device_caps& caps) {
  caps.cache_bytes[1] = facts.cache_bytes;
  caps.private_bytes = 256;
}

}  // namespace

pgr_device_caps make_caps(const pgr_device& device) {
  const DeviceFacts& facts = device.facts;
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  const uint32_t f64 = facts.has_fp64 ? bit(PGR_DTYPE_F64) : 0;
  caps.storage_dtypes = kBool | kInts | kHalves | bit(PGR_DTYPE_F32) | f64;
  claim_memory(caps.storage_dtypes, caps.op_dtypes);
  claim_arithmetic(facts, caps.op_dtypes);
  caps.op_dtypes[PGR_OP_CAST] = caps.storage_dtypes;
  caps.op_dtypes[PGR_OP_BITCAST] = caps.storage_dtypes & ~kBool;
  caps.denormals = facts.keeps_denormals ? PGR_DENORMALS_PRESERVE : PGR_DENORMALS_UNSPECIFIED;
  caps.contract_supported = 1;
  caps.division = facts.has_rounded_division ? 0 : 3;
  describe_vectors(facts, caps);
  caps.subgroup_size = facts.subgroup_size;
  if (facts.is_cpu)
    describe_cpu(facts, caps);
  else
    describe_gpu(facts, caps);
  caps.has_local = 1;
  caps.threads = facts.compute_units;
  for (int axis = 0; axis < 3; ++axis)
    caps.max_local_size[axis] = static_cast<uint32_t>(facts.max_local_size[axis]);
  caps.max_local_total = static_cast<uint32_t>(facts.max_local_total);
  for (int axis = 0; axis < 3; ++axis) caps.max_groups[axis] = most_groups(axis);
  caps.local_bytes = facts.local_bytes;
  caps.local_in_cache = !facts.has_own_local;
  caps.cache_line_bytes = facts.cache_line_bytes ? facts.cache_line_bytes : 64;
  caps.max_buffer_bytes = facts.max_buffer_bytes;
  caps.max_params = facts.max_params;
  caps.buffer_align_bytes = facts.base_align_bytes;
  caps.unified_memory = facts.is_unified;
  return caps;
}

}  // namespace plugrad::opencl
