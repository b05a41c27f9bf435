// "pgr.queue": a queue is a stream; an event is a CUDA event with timing.
#include <algorithm>
#include <chrono>
#include <thread>

#include "plugin.h"

struct pgr_event {
  explicit pgr_event(pgr_device& device) : epoch(device.clock->epoch()), event(device) {}
  std::shared_ptr<const plugrad::cuda::Epoch> epoch;  // recorded before this event
  plugrad::cuda::Event event;
};

pgr_queue::pgr_queue(pgr_device& on) : device(on), staging(on) {
  plugrad::cuda::check(on, on.driver->stream_create(&stream, plugrad::cuda::kStreamNonBlocking),
                       "cuStreamCreate");
}

// Waits for the stream's work.
pgr_queue::~pgr_queue() {
  plugrad::sdk::guard(nullptr, [&] {
    const plugrad::cuda::ContextScope scope(device);
    device.driver->stream_synchronize(stream);
    device.driver->stream_destroy(stream);
  });
}

namespace plugrad::cuda {
namespace {

pgr_status create(pgr_device* device, pgr_queue** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const ContextScope scope(*device);
    auto queue = std::make_unique<pgr_queue>(*device);
    ++device->other_queues;
    settle_own_queue(*device);
    *out = queue.release();
  });
}

void destroy_queue(pgr_device* device, pgr_queue* queue) {
  if (queue) --device->other_queues;
  delete queue;
}

pgr_status finish(pgr_device* device, pgr_queue* queue, pgr_error* error) {
  return sdk::guard(error, [&] {
    const ContextScope scope(*device);
    check(*device, device->driver->stream_synchronize(queue_of(*device, queue).stream),
          "cuStreamSynchronize");
  });
}

pgr_status record(pgr_device* device, pgr_queue* queue, pgr_event** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    const ContextScope scope(*device);
    auto event = std::make_unique<pgr_event>(*device);
    check(*device,
          device->driver->event_record(event->event.handle(), queue_of(*device, queue).stream),
          "cuEventRecord");
    *out = event.release();
  });
}

pgr_status wait(pgr_device* device, pgr_queue* queue, pgr_event* event, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    const ContextScope scope(*device);
    check(*device,
          device->driver->stream_wait(queue_of(*device, queue).stream, event->event.handle(), 0),
          "cuStreamWaitEvent");
  });
}

bool is_reached(pgr_device& device, const pgr_event& event) {
  const CUresult result = device.driver->event_query(event.event.handle());
  if (result == kNotReady) return false;
  check(device, result, "cuEventQuery");
  return true;
}

// The driver's wait has no timeout: a limited wait polls at increasing intervals.
bool wait_until(pgr_device& device, const pgr_event& event, uint64_t timeout_ns) {
  using namespace std::chrono_literals;
  const uint64_t begin_ns = host_now_ns();
  std::chrono::nanoseconds pause = 1us;
  while (!is_reached(device, event)) {
    const uint64_t waited_ns = host_now_ns() - begin_ns;
    if (waited_ns >= timeout_ns) return false;
    const std::chrono::nanoseconds left(std::min<uint64_t>(timeout_ns - waited_ns, 1'000'000));
    if (waited_ns < 20'000) continue;
    std::this_thread::sleep_for(std::min(pause, left));
    pause = std::min<std::chrono::nanoseconds>(pause * 2, 200us);
  }
  return true;
}

pgr_status event_wait(pgr_device* device, pgr_event* event, uint64_t timeout_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    const ContextScope scope(*device);
    if (timeout_ns == UINT64_MAX)
      return check(*device, device->driver->event_synchronize(event->event.handle()),
                   "cuEventSynchronize");
    sdk::require(wait_until(*device, *event, timeout_ns), PGR_STATUS_TIMED_OUT,
                 "the event was not reached within " + std::to_string(timeout_ns) + " ns");
  });
}

pgr_status event_time(pgr_device* device, pgr_event* event, uint64_t* out_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr && out_ns != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "event_time: event or out_ns is NULL");
    const ContextScope scope(*device);
    sdk::require(is_reached(*device, *event), PGR_STATUS_NOT_READY,
                 "the event was not reached yet");
    *out_ns = device->clock->time_ns(*event->epoch, event->event);
  });
}

void event_destroy(pgr_device*, pgr_event* event) {
  delete event;
}

}  // namespace

void settle_own_queue(pgr_device& device) {
  if (device.other_queues > 0)
    check(device, device.driver->stream_synchronize(device.queue->stream), "cuStreamSynchronize");
}

const pgr_queue_api* queue_table() {
  static const pgr_queue_api table = [] {
    pgr_queue_api made;
    PGR_INIT(made, QUEUE_API);
    made.create = create;
    made.destroy = destroy_queue;
    made.finish = finish;
    made.record = record;
    made.wait = wait;
    made.event_wait = event_wait;
    made.event_time = event_time;
    made.event_destroy = event_destroy;
    return made;
  }();
  return &table;
}

}  // namespace plugrad::cuda
