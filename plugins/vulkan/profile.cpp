// "pgr.profile": correlates the device's and the host's clock, and has counters.
#include <time.h>

#include "plugin.h"
#include "plugrad/sdk/entry.h"

namespace plugrad::vulkan {
namespace {

uint64_t host_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

bool reads_both(const pgr_device& device) {
  return device.facts.calibrated && device.api.vkGetCalibratedTimestampsEXT;
}

struct Moment {
  uint64_t device_ns, host_ns, error_ns;
};

// The driver reads both clocks. Its reported deviation may be stale; the duration of the call
// bounds it.
Moment read_both(pgr_device& device) {
  VkCalibratedTimestampInfoEXT infos[2]{};
  for (VkCalibratedTimestampInfoEXT& info : infos)
    info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;
  uint64_t stamps[2] = {}, deviation = 0;
  const uint64_t before = host_now_ns();
  check_device(
      device,
      device.api.vkGetCalibratedTimestampsEXT(device.api.handle, 2, infos, stamps, &deviation),
      "vkGetCalibratedTimestampsEXT");
  const uint64_t after = host_now_ns();
  return {to_ns(device, stamps[0]), stamps[1], std::max(deviation, after - before)};
}

// A timestamp between two reads of the host's clock.
Moment bracket(pgr_device& device) {
  Stream& stream = *device.streams.front();
  stream.finish();
  const uint32_t query = take_query(device);
  const uint64_t before = host_now_ns();
  const uint64_t work =
      stream.record([&](VkCommandBuffer commands) { write_timestamp(device, commands, query); });
  stream.finish();
  const uint64_t after = host_now_ns();
  const uint64_t device_ns = to_ns(device, read_timestamp(device, query));
  give_back_query(device, query, stream, work);
  return {device_ns, before + (after - before) / 2, (after - before + 1) / 2};
}

pgr_status calibrate(pgr_device* device, uint64_t* out_device_ns, uint64_t* out_host_ns,
                     uint64_t* out_error_ns, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out_device_ns && out_host_ns && out_error_ns, PGR_STATUS_INVALID_ARGUMENT,
                 "calibrate: an out-pointer is NULL");
    sdk::require(device->facts.timestamp_bits > 0, PGR_STATUS_UNSUPPORTED,
                 "the device writes no timestamps");
    const Moment moment = reads_both(*device) ? read_both(*device) : bracket(*device);
    *out_device_ns = moment.device_ns;
    *out_host_ns = moment.host_ns;
    *out_error_ns = moment.error_ns;
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

std::optional<uint64_t> device_now_ns(pgr_device& device) {
  if (device.facts.timestamp_bits == 0) return 0;  // the device has no timestamps
  return reads_both(device) ? std::optional(read_both(device).device_ns) : std::nullopt;
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

}  // namespace plugrad::vulkan
