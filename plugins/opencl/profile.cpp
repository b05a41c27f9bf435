// "pgr.profile": the clock of the driver's profiling events, and counters.
#include <time.h>

#include "plugin.h"
#include "plugrad/sdk/entry.h"

namespace plugrad::opencl {
namespace {

constexpr int kTries = 8;  // attempts; the one with the smallest uncertainty is used

uint64_t host_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Pair {
  uint64_t device_ns = 0, host_ns = 0, error_ns = UINT64_MAX;
};

// The marker completes between two reads of the host's clock.
Pair one_pair(pgr_device& device, cl_command_queue queue) {
  const uint64_t before_ns = host_now_ns();
  cl_event event = nullptr;
  device.check(api().clEnqueueMarkerWithWaitList(queue, 0, nullptr, &event),
               "clEnqueueMarkerWithWaitList");
  const std::unique_ptr<_cl_event, cl_int (*)(cl_event)> owner(event, api().clReleaseEvent);
  device.check(api().clWaitForEvents(1, &event), "clWaitForEvents");
  const uint64_t after_ns = host_now_ns();
  return {event_ns(device, event, CL_PROFILING_COMMAND_END), before_ns + (after_ns - before_ns) / 2,
          (after_ns - before_ns + 1) / 2};
}

// On a separate queue: the others may be busy.
pgr_status calibrate(pgr_device* device, uint64_t* out_device_ns, uint64_t* out_host_ns,
                     uint64_t* out_error_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out_device_ns && out_host_ns && out_error_ns, PGR_STATUS_INVALID_ARGUMENT,
                 "calibrate: an out-pointer is NULL");
    const std::unique_ptr<_cl_command_queue, cl_int (*)(cl_command_queue)> queue(
        make_queue(*device), api().clReleaseCommandQueue);
    Pair best;
    for (int i = 0; i < kTries; ++i) {
      const Pair pair = one_pair(*device, queue.get());
      if (pair.error_ns < best.error_ns) best = pair;
    }
    *out_device_ns = best.device_ns;
    *out_host_ns = best.host_ns;
    *out_error_ns = best.error_ns;
  });
}

pgr_status counter(pgr_device* device, uint32_t index, pgr_counter* out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::answer_counter({{"kernels_launched", "1", device->kernels_launched},
                         {"bytes_copied", "bytes", device->bytes_copied},
                         {"command_buffers_replayed", "1", device->command_buffers_replayed}},
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

}  // namespace plugrad::opencl
