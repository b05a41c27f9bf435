// "pgr.profile": correlates the device's and the host's clock, and counts submitted work.
#include "plugin.h"
#include "plugrad/sdk/entry.h"

namespace plugrad::cuda {
namespace {

pgr_status calibrate(pgr_device* device, uint64_t* out_device_ns, uint64_t* out_host_ns,
                     uint64_t* out_error_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_device_ns && out_host_ns && out_error_ns, PGR_STATUS_INVALID_ARGUMENT,
                 "calibrate: an out-pointer is NULL");
    const ContextScope scope(*device);
    const uint64_t before_ns = host_now_ns();
    const uint64_t device_ns = device->clock->now_ns();
    const uint64_t after_ns = host_now_ns();
    *out_device_ns = device_ns;
    *out_host_ns = before_ns + (after_ns - before_ns) / 2;
    *out_error_ns = (after_ns - before_ns + 1) / 2;
  });
}

pgr_status counter(pgr_device* device, uint32_t index, pgr_counter* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::answer_counter({{"kernels_launched", "1", device->kernels_launched},
                         {"bytes_copied", "bytes", device->bytes_copied}},
                        index, out);
  });
}

}  // namespace

const pgr_profile_api* profile_table() {
  static const pgr_profile_api table = [] {
    pgr_profile_api made;
    PGR_INIT(made, PROFILE_API);
    made.calibrate = calibrate;
    made.counter = counter;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda
