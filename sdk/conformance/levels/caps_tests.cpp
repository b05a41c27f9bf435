// L1: a device's capabilities are complete, constant and true.
#include <algorithm>

#include "conformance/levels/error_families.h"
#include "conformance/levels/kernels.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

pgr_device_info info_of(const Tables& t) {
  pgr_device_info info;
  PGR_INIT(info, DEVICE_INFO);
  expect_ok("device.info",
            [&](pgr_error* error) { return t.devices.info(t.handle, &info, error); });
  return info;
}

pgr_device_caps caps_of(const Tables& t) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  expect_ok("device.caps",
            [&](pgr_error* error) { return t.devices.caps(t.handle, &caps, error); });
  return caps;
}

bool is_utf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const size_t length = lead < 0x80       ? 1
                          : lead >> 5 == 6  ? 2
                          : lead >> 4 == 14 ? 3
                          : lead >> 3 == 30 ? 4
                                            : 0;
    if (length == 0 || i + length > text.size()) return false;
    for (size_t k = 1; k < length; ++k)
      if ((static_cast<unsigned char>(text[i + k]) & 0xc0) != 0x80) return false;
    i += length;
  }
  return true;
}

void check_info(Context& context) {
  const pgr_device_info info = info_of(Tables(context));
  const std::pair<const char*, pgr_string> kStrings[] = {{"stable_id", info.stable_id},
                                                         {"name", info.name},
                                                         {"arch", info.arch},
                                                         {"vendor", info.vendor},
                                                         {"driver", info.driver}};
  for (const auto& [name, text] : kStrings) {
    expect(text.data || text.size == 0, std::string("info.") + name + " is NULL with a size");
    expect(is_utf8(sdk::to_view(text)), std::string("info.") + name + " is not UTF-8");
  }
  expect(info.stable_id.size > 0, "info.stable_id is empty");
  expect(info.name.size > 0, "info.name is empty");
  expect(info.arch.size > 0, "info.arch is empty: the compile cache is keyed by it");
  expect(info.memory_bytes > 0, "info.memory_bytes is 0");
  expect(info.is_software <= 1, "info.is_software is neither 0 nor 1");
}

void check_facts_do_not_change(Context& context) {
  Tables t(context);
  const pgr_device_caps before = caps_of(t);
  const std::string id(sdk::to_view(info_of(t).stable_id));
  {
    const auto kernel = t.device.compile(spread_kernel(10));
    Buffer buffer = t.device.allocate(1u << 20);
    const pgr_device_caps after = caps_of(t);
    expect(std::memcmp(&before, &after, sizeof before) == 0,
           "caps changed while the device was open");
  }
  const auto other = context.plugin().open_device();
  expect(std::string(sdk::to_view(info_of(Tables(*other)).stable_id)) == id,
         "two handles of one device have different stable ids");
}

void check_limits(Context& context) {
  const pgr_device_caps caps = caps_of(Tables(context));
  expect(caps.denormals <= PGR_DENORMALS_UNSPECIFIED, "caps.denormals has an unknown value");
  expect(caps.max_local_total >= 1, "caps.max_local_total is 0: no group can run");
  for (int axis = 0; axis < 3; ++axis) {
    expect(caps.max_local_size[axis] >= 1, "caps.max_local_size has a 0");
    expect(caps.max_groups[axis] >= 65'535, "caps.max_groups is below 65,535");
  }
  expect(caps.threads >= 1, "caps.threads is 0");
  expect(caps.max_params >= 8, "caps.max_params is below 8");
  expect(caps.max_buffer_bytes >= 1u << 20, "caps.max_buffer_bytes is below 1 MiB");
  const uint64_t items = uint64_t{caps.max_local_size[0]} * caps.max_local_size[1] *
                         std::max(caps.max_local_size[2], 1u);
  expect(!caps.has_local || (caps.max_local_total > 1 && items > 1),
         "caps.has_local is set, and groups have one work-item");
  expect(!caps.has_local || caps.local_bytes > 0, "caps.has_local is set, and local_bytes is 0");
  expect(caps.tensor_core_count == 0 || (caps.tensor_cores && caps.tensor_core_stride >= 136),
         "caps.tensor_cores is NULL or has a stride below the struct's size");
  expect((caps.async_copy_bytes & ~(4u | 8u | 16u)) == 0,
         "caps.async_copy_bytes has other sizes than 4, 8 and 16");
  expect((caps.async_copy_bytes != 0) == (caps.op_dtypes[PGR_OP_ASYNC_COPY] != 0),
         "caps.async_copy_bytes and op_dtypes[ASYNC_COPY] disagree about asynchronous copies");
  for (uint32_t op : {PGR_OP_ASYNC_COMMIT, PGR_OP_ASYNC_WAIT})
    expect((caps.op_dtypes[op] >> PGR_DTYPE_BOOL & 1) == (caps.op_dtypes[PGR_OP_ASYNC_COPY] != 0),
           "of ASYNC_COPY, ASYNC_COMMIT (on bool) and ASYNC_WAIT (on bool) only some are claimed");
  expect(caps.local_banks == 0 || caps.local_bank_bytes > 0,
         "caps.local_banks is set, and local_bank_bytes is 0");
}

void check_vector_lanes(Context& context) {
  constexpr uint32_t kWidest = 64;  // of kernel IR
  const pgr_device_caps caps = caps_of(Tables(context));
  for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d) {
    const uint32_t lanes = caps.vector_lanes[d];
    expect((lanes & (lanes - 1)) == 0 && lanes <= kWidest,
           "caps.vector_lanes of " + std::string(sdk::dtype_name(d)) + " is " +
               std::to_string(lanes) + ": a power of two up to 64 is allowed, or 0");
  }
}

// Rejects claims of ops on dtypes without that op, and bits of unknown dtypes.
void check_claims_exist(Context& context) {
  const pgr_device_caps caps = caps_of(Tables(context));
  for (uint32_t op = 0; op < 64; ++op) {
    const uint32_t claimed = caps.op_dtypes[op];
    if (claimed == 0) continue;
    const sdk::OpInfo* info = sdk::op_info(op);
    if (!info) continue;  // defined by a newer header
    const std::string name = "caps.op_dtypes[" + std::string(info->name) + "]";
    expect((claimed & 1u << PGR_DTYPE_VOID) == 0 || info->op_class != PGR_OP_CLASS_ALU,
           name + " claims void");
    const bool floats_only = op == PGR_OP_RECIP || op == PGR_OP_FDIV || op == PGR_OP_SQRT ||
                             op == PGR_OP_TRUNC || op == PGR_OP_EXP2 || op == PGR_OP_LOG2 ||
                             op == PGR_OP_SIN || op == PGR_OP_FMA;
    for (uint32_t d = PGR_DTYPE_BOOL; d < PGR_DTYPE_COUNT; ++d)
      expect(!(floats_only && (claimed >> d & 1)) || sdk::dtype_info(d)->is_float,
             name + " claims " + std::string(sdk::dtype_name(d)) + ", and works on floats only");
  }
}

// The ops that no decomposition can replace.
void check_mandatory_claims(Context& context) {
  Device& device = context.device();
  for (uint32_t dtype : {PGR_DTYPE_BOOL, PGR_DTYPE_I32, PGR_DTYPE_F32}) {
    expect(device.stores(dtype), "buffers of " + std::string(sdk::dtype_name(dtype)) +
                                     " are mandatory (caps.storage_dtypes)");
    for (uint32_t op : {PGR_OP_PARAM, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE, PGR_OP_ARRAY})
      expect(device.claims(op, dtype), std::string(sdk::op_info(op)->name) + " on " +
                                           std::string(sdk::dtype_name(dtype)) + " is mandatory");
  }
  for (uint32_t op :
       {PGR_OP_GROUP_ID, PGR_OP_LOOP, PGR_OP_END_LOOP, PGR_OP_ADD, PGR_OP_MUL, PGR_OP_CMPLT})
    expect(device.claims(op, PGR_DTYPE_I32),
           std::string(sdk::op_info(op)->name) + " on i32 is mandatory");
}

void check_health(Context& context) {
  Tables t(context);
  require_offered(t.devices.health, "pgr.device health");
  uint32_t health = 99;
  expect_ok_or_unsupported("device.health", [&](pgr_error* error) {
    return t.devices.health(t.handle, &health, error);
  });
  expect(health == PGR_HEALTH_OK, "health of a working device is " + std::to_string(health));
}

void check_kernel_limits(Context& context) {
  Tables t(context);
  require_offered(t.runner.limits, "pgr.runner limits");
  const auto kernel = t.device.compile(spread_kernel(10));
  pgr_kernel_limits limits;
  PGR_INIT(limits, KERNEL_LIMITS);
  expect_ok_or_unsupported("runner.limits", [&](pgr_error* error) {
    return t.runner.limits(t.handle, kernel->handle(), &limits, error);
  });
  expect(limits.max_local_total >= 1, "limits.max_local_total of a kernel is 0");
  expect(limits.max_local_total <= t.device.caps().max_local_total,
         "limits.max_local_total of a kernel is above the device's");
}

}  // namespace

void add_caps_tests(Tests& tests) {
  auto add = [&](const std::string& id, std::function<void(Context&)> run,
                 const char* unlocked_by = "") {
    add_test(tests, Level::L1, "l1.device." + id, std::move(run)).unlocked_by = unlocked_by;
  };
  add("info", check_info);
  add("facts_stay", check_facts_do_not_change);
  add("limits", check_limits);
  add("vector_lanes", check_vector_lanes);
  add("claims_exist", check_claims_exist);
  add("mandatory_claims", check_mandatory_claims);
  add("health", check_health);  // without it a device is always healthy
  add("kernel_limits", check_kernel_limits, "pgr.runner limits");
}

}  // namespace plugrad::conformance
