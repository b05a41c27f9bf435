// Describes the device and detects its loss.
#include "plugin.h"

pgr_device::~pgr_device() {
  const plugrad::opencl::Api& cl = plugrad::opencl::api();
  if (queue) {
    cl.clFinish(queue);
    cl.clReleaseCommandQueue(queue);
  }
  recent_programs.clear();
  if (context) cl.clReleaseContext(context);
}

void pgr_device::check(cl_int code, const std::string& what) {
  if (code == CL_SUCCESS) return;
  if (plugrad::opencl::is_lost(code)) is_lost = true;
  plugrad::opencl::require_success(code, what + " on " + facts.name);
}

namespace plugrad::opencl {
namespace {

pgr_status device_info(pgr_device* device, pgr_device_info* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    const DeviceFacts& facts = device->facts;
    pgr_device_info own;
    PGR_INIT(own, DEVICE_INFO);
    own.stable_id = sdk::to_pgr(facts.stable_id);
    own.name = sdk::to_pgr(facts.name);
    // "OpenCL 3.0"; vendors append more text.
    own.arch = sdk::to_pgr(
        std::string_view(facts.version).substr(0, facts.version.find(' ', sizeof "OpenCL")));
    own.vendor = sdk::to_pgr(facts.vendor);
    own.driver = sdk::to_pgr(facts.driver);
    own.memory_bytes = facts.memory_bytes;
    own.is_software = facts.is_software;
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
    own.total_bytes = device->facts.memory_bytes;
    own.used_bytes = device->used_bytes.load();
    own.free_bytes = own.total_bytes > own.used_bytes ? own.total_bytes - own.used_bytes : 0;
    sdk::fill(out, own);
  });
}

pgr_status health(pgr_device* device, uint32_t* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = device->is_lost ? PGR_HEALTH_LOST : PGR_HEALTH_OK;
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
    made.health = health;
    made.synchronize = synchronize;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::opencl
