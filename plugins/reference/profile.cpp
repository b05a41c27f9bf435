// "pgr.profile": the device's clock starts when the device is opened.
#include <time.h>

#include "plugin.h"
#include "plugrad/sdk/entry.h"
#include "plugrad/sdk/guard.h"

namespace plugrad::reference {
namespace {

uint64_t host_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

pgr_status calibrate(pgr_device* device, uint64_t* out_device_ns, uint64_t* out_host_ns,
                     uint64_t* out_error_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_profile, "pgr.profile");
    sdk::require(out_device_ns && out_host_ns && out_error_ns, PGR_STATUS_INVALID_ARGUMENT,
                 "calibrate: an out-pointer is NULL");
    const uint64_t before_ns = host_now_ns();
    const uint64_t device_ns = device_now_ns(*device);
    const uint64_t after_ns = host_now_ns();
    *out_device_ns = device_ns;
    *out_host_ns = before_ns + (after_ns - before_ns) / 2;
    *out_error_ns = (after_ns - before_ns + 1) / 2;
  });
}

pgr_status counter(pgr_device* device, uint32_t index, pgr_counter* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_profile, "pgr.profile");
    sdk::answer_counter({{"kernels_launched", "1", device->kernels_launched},
                         {"bytes_copied", "bytes", device->bytes_copied}},
                        index, out);
  });
}

}  // namespace

uint64_t device_now_ns(const pgr_device& device) {
  return host_now_ns() - device.opened_ns;
}

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

}  // namespace plugrad::reference
