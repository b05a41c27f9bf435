// Claims: the ops of the dialect "glsl" for the types that the device has.
#include <algorithm>

#include "driver/facts.h"

namespace plugrad::vulkan {
namespace {

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);
constexpr uint32_t kWide =
    bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32) | bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);
constexpr uint32_t kBytes = bit(PGR_DTYPE_I8) | bit(PGR_DTYPE_U8);
constexpr uint32_t kShorts = bit(PGR_DTYPE_I16) | bit(PGR_DTYPE_U16);

struct Groups {
  uint32_t ints, floats, storage;
};

// f16 and f64 arithmetic requires that denormals are preserved. llvmpipe does not report its
// denormal mode, and preserves these.
Groups groups_of(const Facts& facts) {
  const bool is_llvmpipe = facts.driver_id == VK_DRIVER_ID_MESA_LLVMPIPE;
  Groups groups;
  groups.ints = kBytes | kWide | (facts.int16 ? kShorts : 0);
  groups.floats = bit(PGR_DTYPE_F32);
  if (facts.float16 && (facts.floats.shaderDenormPreserveFloat16 || is_llvmpipe))
    groups.floats |= bit(PGR_DTYPE_F16);
  if (facts.float64 && (facts.floats.shaderDenormPreserveFloat64 || is_llvmpipe))
    groups.floats |= bit(PGR_DTYPE_F64);
  groups.storage = kBool | groups.ints | groups.floats | (facts.int16 ? bit(PGR_DTYPE_BF16) : 0u);
  return groups;
}

void claim_ops(const Facts& facts, const Groups& groups, uint32_t* ops) {
  for (uint32_t op : {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE,
                      PGR_OP_WHERE, PGR_OP_CAST})
    ops[op] = groups.storage;
  for (uint32_t op : {PGR_OP_GROUP_ID, PGR_OP_LOCAL_ID, PGR_OP_LOOP, PGR_OP_END_LOOP})
    ops[op] = kIndex;
  for (uint32_t op : {PGR_OP_IF, PGR_OP_END_IF, PGR_OP_BARRIER}) ops[op] = kBool;
  const uint32_t numbers = groups.ints | groups.floats;
  for (uint32_t op : {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG}) ops[op] = numbers;
  for (uint32_t op : {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_SHL, PGR_OP_SHR}) ops[op] = groups.ints;
  for (uint32_t op : {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR}) ops[op] = kBool | groups.ints;
  for (uint32_t op : {PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE})
    ops[op] = kBool | numbers;
  for (uint32_t op : {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_TRUNC}) ops[op] = groups.floats;
  // Drivers need not round f64 square roots correctly; llvmpipe uses the processor's instruction,
  // which does.
  ops[PGR_OP_SQRT] = groups.floats;
  if (facts.driver_id != VK_DRIVER_ID_MESA_LLVMPIPE) ops[PGR_OP_SQRT] &= ~bit(PGR_DTYPE_F64);
  ops[PGR_OP_BITCAST] = groups.storage & ~kBool;
  ops[PGR_OP_ATOMIC_ADD] = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32);
  if (facts.atomic_int64) ops[PGR_OP_ATOMIC_ADD] |= bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);
  if (facts.atomic_float32) ops[PGR_OP_ATOMIC_ADD] |= bit(PGR_DTYPE_F32);
}

void set_limits(const Facts& facts, pgr_device_caps& caps) {
  const VkPhysicalDeviceLimits& limits = facts.limits;
  for (int axis = 0; axis < 3; ++axis) {
    caps.max_local_size[axis] = limits.maxComputeWorkGroupSize[axis];
    caps.max_groups[axis] = limits.maxComputeWorkGroupCount[axis];
  }
  caps.max_local_total = limits.maxComputeWorkGroupInvocations;
  if (facts.max_subgroups > 0)
    caps.max_local_total =
        std::min(caps.max_local_total, facts.max_subgroups * facts.subgroup_size);
  caps.local_bytes = limits.maxComputeSharedMemorySize;
  caps.local_in_cache = facts.is_software();
  caps.private_bytes = 1024;
  caps.cache_line_bytes = 64;
  caps.max_buffer_bytes = std::min(facts.max_allocation_bytes, facts.memory_bytes());
  caps.max_params = 1024;
  caps.buffer_align_bytes = kBufferAlign;
}

}  // namespace

pgr_device_caps make_caps(const Facts& facts) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  const Groups groups = groups_of(facts);
  claim_ops(facts, groups, caps.op_dtypes);
  caps.storage_dtypes = groups.storage;
  caps.denormals =
      facts.floats.shaderDenormPreserveFloat32 ? PGR_DENORMALS_PRESERVE : PGR_DENORMALS_UNSPECIFIED;
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d) caps.vector_lanes[d] = 1;
  caps.subgroup_size = facts.subgroup_size;
  caps.has_local = 1;
  caps.threads = facts.is_software() ? 4 : 32;
  caps.division = 3;
  set_limits(facts, caps);
  caps.unified_memory = facts.is_unified();
  return caps;
}

}  // namespace plugrad::vulkan
