// Describes the GPUs by the driver's attributes, and owns the context of a device.
#include "plugrad/plugin_api/device.h"

#include <algorithm>

#include "plugin.h"
#include "plugrad/sdk/tensor_core.h"

namespace plugrad::cuda {
namespace {

constexpr uint64_t kMostStaticLocalBytes = 48 << 10;  // limit of statically declared arrays

std::string uuid_text(const CUuuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid.bytes[i] >> 4];
    text += kDigits[uuid.bytes[i] & 15];
  }
  return text;
}

uint32_t attribute(const Driver& driver, int which, CUdevice device) {
  int value = 0;
  if (driver.device_attribute(&value, which, device) != kSuccess) return 0;
  return static_cast<uint32_t>(std::max(value, 0));
}

DeviceFacts facts_of(const Driver& driver, CUdevice device) {
  DeviceFacts facts;
  facts.handle = device;
  CUuuid uuid{};
  driver.device_uuid(&uuid, device);
  facts.id = uuid_text(uuid);
  char name[256] = {};
  driver.device_name(name, sizeof name - 1, device);
  facts.name = name;
  size_t memory_bytes = 0;
  driver.device_memory(&memory_bytes, device);
  facts.memory_bytes = memory_bytes;
  const auto get = [&](int which) { return attribute(driver, which, device); };
  facts.compute_capability = get(kComputeCapabilityMajor) * 10 + get(kComputeCapabilityMinor);
  facts.arch = "sm_" + std::to_string(facts.compute_capability);
  facts.driver = "CUDA " + std::to_string(driver.version / 1000) + "." +
                 std::to_string(driver.version % 1000 / 10);
  facts.multiprocessors = get(kMultiprocessorCount);
  facts.warp_size = get(kWarpSize);
  facts.registers_per_block = get(kMaxRegistersPerBlock);
  facts.max_block = get(kMaxThreadsPerBlock);
  for (int axis = 0; axis < 3; ++axis) {
    facts.max_block_size[static_cast<size_t>(axis)] = get(kMaxBlockDimX + axis);
    facts.max_grid[static_cast<size_t>(axis)] = get(kMaxGridDimX + axis);
  }
  facts.local_bytes = std::min<uint64_t>(get(kMaxSharedMemoryPerBlock), kMostStaticLocalBytes);
  facts.core_local_bytes = get(kMaxSharedMemoryPerMultiprocessor);
  facts.l2_bytes = get(kL2CacheSize);
  return facts;
}

constexpr uint32_t bit(uint32_t dtype) {
  return 1u << dtype;
}
constexpr uint32_t kBool = bit(PGR_DTYPE_BOOL);
constexpr uint32_t kWideInts =
    bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_U32) | bit(PGR_DTYPE_I64) | bit(PGR_DTYPE_U64);
constexpr uint32_t kInts =
    bit(PGR_DTYPE_I8) | bit(PGR_DTYPE_U8) | bit(PGR_DTYPE_I16) | bit(PGR_DTYPE_U16) | kWideInts;
constexpr uint32_t kFloats = bit(PGR_DTYPE_F32) | bit(PGR_DTYPE_F64);
constexpr uint32_t kHalves = bit(PGR_DTYPE_F16) | bit(PGR_DTYPE_BF16);
constexpr uint32_t kStorage = kBool | kInts | kFloats | kHalves;
constexpr uint32_t kIndex = bit(PGR_DTYPE_I32) | bit(PGR_DTYPE_I64);

// f16 and bf16 are only moved and cast.
void claim_ops(uint32_t* ops) {
  for (uint32_t op : {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE,
                      PGR_OP_WHERE, PGR_OP_CAST})
    ops[op] = kStorage;
  for (uint32_t op : {PGR_OP_GROUP_ID, PGR_OP_LOCAL_ID, PGR_OP_LOOP, PGR_OP_END_LOOP})
    ops[op] = kIndex;
  for (uint32_t op : {PGR_OP_IF, PGR_OP_END_IF, PGR_OP_BARRIER}) ops[op] = kBool;
  for (uint32_t op : {PGR_OP_ADD, PGR_OP_SUB, PGR_OP_MUL, PGR_OP_NEG}) ops[op] = kInts | kFloats;
  for (uint32_t op : {PGR_OP_IDIV, PGR_OP_MOD, PGR_OP_SHL, PGR_OP_SHR}) ops[op] = kInts;
  for (uint32_t op : {PGR_OP_AND, PGR_OP_OR, PGR_OP_XOR}) ops[op] = kBool | kInts;
  for (uint32_t op : {PGR_OP_MAX, PGR_OP_CMPLT, PGR_OP_CMPEQ, PGR_OP_CMPNE})
    ops[op] = kBool | kInts | kFloats;
  for (uint32_t op : {PGR_OP_RECIP, PGR_OP_FDIV, PGR_OP_SQRT, PGR_OP_FMA, PGR_OP_TRUNC})
    ops[op] = kFloats;
  ops[PGR_OP_EXP2] = bit(PGR_DTYPE_F32);
  ops[PGR_OP_BITCAST] = kStorage & ~kBool;
  ops[PGR_OP_ATOMIC_ADD] = kWideInts | kFloats;
}

// Since compute capability 8.0: tiles of 16 x 8 per warp, and asynchronous copies to shared memory.
constexpr uint32_t kTensorCoreDtypes[] = {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32};
constexpr unsigned kLeastForTensorCores = 80;

void claim_async_copies(pgr_device_caps& caps) {
  caps.op_dtypes[PGR_OP_ASYNC_COPY] = kStorage;
  caps.op_dtypes[PGR_OP_ASYNC_COMMIT] = caps.op_dtypes[PGR_OP_ASYNC_WAIT] = kBool;
  caps.async_copy_bytes = 4 | 8 | 16;
}

void claim_tensor_cores(pgr_device_caps& caps) {
  static const std::vector<pgr_tensor_core> cores = [] {
    std::vector<pgr_tensor_core> made;
    for (uint32_t dtype : kTensorCoreDtypes) made.push_back(sdk::make_warp_core(dtype));
    return made;
  }();
  for (uint32_t op : {PGR_OP_WMMA, PGR_OP_VECTOR, PGR_OP_LANE})
    for (uint32_t dtype : kTensorCoreDtypes) caps.op_dtypes[op] |= bit(dtype);
  caps.tensor_cores = cores.data();
  caps.tensor_core_count = static_cast<uint32_t>(cores.size());
  caps.tensor_core_stride = sizeof(pgr_tensor_core);
}

pgr_device_caps make_caps(const DeviceFacts& facts) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  claim_ops(caps.op_dtypes);
  caps.storage_dtypes = kStorage;
  caps.denormals = PGR_DENORMALS_PRESERVE;
  caps.contract_supported = 1;
  for (uint32_t d = 1; d < PGR_DTYPE_COUNT; ++d) caps.vector_lanes[d] = 1;
  // The number that still fills a multiprocessor with groups of 256 work-items.
  caps.vector_registers = facts.registers_per_block / 512;
  caps.subgroup_size = facts.warp_size;
  caps.has_local = 1;
  caps.threads = facts.multiprocessors;
  for (size_t axis = 0; axis < 3; ++axis) {
    caps.max_local_size[axis] = facts.max_block_size[axis];
    caps.max_groups[axis] = facts.max_grid[axis];
  }
  caps.max_local_total = facts.max_block;
  caps.local_bytes = facts.local_bytes;
  caps.private_bytes = 512;  // fits in registers
  // one memory, split between shared memory and L1 by each kernel
  caps.cache_bytes[0] = facts.core_local_bytes;
  caps.cache_bytes[1] = caps.cache_bytes[2] = facts.l2_bytes;
  caps.cache_line_bytes = 128;
  caps.max_buffer_bytes = facts.memory_bytes;
  caps.max_params = kMostParams;
  caps.buffer_align_bytes = kBufferAlign;
  caps.core_local_bytes = facts.core_local_bytes;
  caps.local_banks = 32;  // the same on every architecture; there is no device attribute
  caps.local_bank_bytes = 4;
  if (facts.compute_capability >= kLeastForTensorCores) {
    claim_tensor_cores(caps);
    claim_async_copies(caps);
  }
  return caps;
}

pgr_status device_info(pgr_device* device, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const DeviceFacts& facts = device->facts;
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr(facts.id);
    own.name = sdk::to_pgr(facts.name);
    own.arch = sdk::to_pgr(facts.arch);
    own.vendor = sdk::to_pgr("NVIDIA");
    own.driver = sdk::to_pgr(facts.driver);
    own.memory_bytes = facts.memory_bytes;
    sdk::fill(out, own);
  });
}

pgr_status caps(pgr_device* device, pgr_device_caps* out, pgr_error* error) {
  return sdk::guard(error, [&] { sdk::fill(out, make_caps(device->facts)); });
}

pgr_status memory_stats(pgr_device* device, pgr_memory_stats* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    size_t free_bytes = 0, total_bytes = 0;
    const ContextScope scope(*device);
    check(*device, device->driver->memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    pgr_memory_stats own;
    PGR_INIT(own, MEMORY_STATS);
    own.total_bytes = total_bytes;
    own.free_bytes = free_bytes;
    own.used_bytes = device->used_bytes;
    sdk::fill(out, own);
  });
}

// Any call may report a failure of work in flight.
pgr_status health(pgr_device* device, uint32_t* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    sdk::guard(nullptr, [&] {
      size_t free_bytes = 0, total_bytes = 0;
      const ContextScope scope(*device);
      check(*device, device->driver->memory_info(&free_bytes, &total_bytes), "cuMemGetInfo");
    });
    *out = device->is_lost ? PGR_HEALTH_LOST : PGR_HEALTH_OK;
  });
}

pgr_status synchronize(pgr_device* device, pgr_error* error) {
  return sdk::guard(error, [&] {
    const ContextScope scope(*device);
    check(*device, device->driver->synchronize(), "cuCtxSynchronize");
  });
}

}  // namespace

std::vector<DeviceFacts> list_devices(const Driver& driver) {
  int count = 0;
  if (driver.device_count(&count) != kSuccess) count = 0;
  std::vector<DeviceFacts> devices;
  for (int i = 0; i < count; ++i) {
    CUdevice device = 0;
    if (driver.device_get(&device, i) != kSuccess) continue;
    DeviceFacts facts = facts_of(driver, device);
    if (facts.compute_capability >= 60) devices.push_back(std::move(facts));
  }
  std::sort(devices.begin(), devices.end(),
            [](const DeviceFacts& a, const DeviceFacts& b) { return a.id < b.id; });
  return devices;
}

ContextScope::ContextScope(pgr_device& device) : driver_(*device.driver) {
  if (device.is_lost)
    throw sdk::StatusError(
        PGR_STATUS_DEVICE_LOST,
        device.facts.name + " is lost since " + device.lost_by + "; close it and open it again");
  check(device, driver_.push_context(device.context), "cuCtxPushCurrent");
}

ContextScope::~ContextScope() {
  CUcontext popped = nullptr;
  driver_.pop_context(&popped);
}

void fail(pgr_device& device, CUresult result, const std::string& what) {
  std::string message = what + ": " + device.driver->name_of(result);
  if (is_sticky(result)) {
    std::call_once(device.lost_once, [&] {
      device.lost_by = message;
      device.is_lost = true;
    });
    message += " (of this call or of work queued before it); " + device.facts.name +
               " is lost: close it and open it again";
  }
  throw sdk::StatusError(status_of(result), message, result);
}

const pgr_device_api* device_table() {
  static const pgr_device_api table = [] {
    pgr_device_api made;
    PGR_INIT(made, DEVICE_API);
    made.info = device_info;
    made.caps = caps;
    made.memory_stats = memory_stats;
    made.health = health;
    made.synchronize = synchronize;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda

pgr_device::~pgr_device() {
  queue.reset();
  clock.reset();
  if (context) driver->release_context(facts.handle);
}
