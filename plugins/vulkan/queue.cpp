// "pgr.queue": a queue is a stream; an event is the number of its work and a timestamp.
#include <algorithm>
#include <optional>

#include "plugin.h"

struct pgr_event {
  plugrad::vulkan::Stream* stream;
  uint64_t work;
  std::optional<uint64_t> time_ns;  // creation time, if the event was already reached
  uint32_t query = 0;               // otherwise
};

namespace plugrad::vulkan {
namespace {

// Streams outlive their queue: another stream may still wait for them.
Stream* take_stream(pgr_device& device) {
  const std::lock_guard lock(device.mutex);
  if (!device.idle_streams.empty()) {
    Stream* stream = device.idle_streams.back();
    device.idle_streams.pop_back();
    return stream;
  }
  HardwareQueue& queue =
      *device.hardware_queues[device.streams.size() % device.hardware_queues.size()];
  device.streams.push_back(std::make_unique<Stream>(device, queue));
  return device.streams.back().get();
}

pgr_status create(pgr_device* device, pgr_queue** out, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    *out = new pgr_queue{take_stream(*device)};
  });
}

void destroy_queue(pgr_device* device, pgr_queue* queue) {
  if (!queue) return;
  sdk::guard(nullptr, [&] { queue->stream->finish(); });
  {
    const std::lock_guard lock(device->mutex);
    device->idle_streams.push_back(queue->stream);
  }
  delete queue;
}

pgr_status finish(pgr_device* device, pgr_queue* queue, pgr_error* error) {
  return call(device, error, [&] {
    stream_of(*device, queue).finish();
    report_cut_loops(*device);
  });
}

pgr_status record(pgr_device* device, pgr_queue* queue, pgr_event** out, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    Stream& stream = stream_of(*device, queue);
    auto event = std::make_unique<pgr_event>(pgr_event{&stream, stream.last(), {}});
    // A stream may share its hardware queue with a busy one, which would delay a timestamp.
    if (stream.reached(event->work)) event->time_ns = device_now_ns(*device);
    if (!event->time_ns) {
      event->query = take_query(*device);
      event->work = stream.record(
          [&](VkCommandBuffer commands) { write_timestamp(*device, commands, event->query); });
    }
    *out = event.release();
  });
}

pgr_status wait(pgr_device* device, pgr_queue* queue, pgr_event* event, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    stream_of(*device, queue).wait_for(*event->stream, event->work);
  });
}

pgr_status event_wait(pgr_device* device, pgr_event* event, uint64_t timeout_ns, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    if (event->stream->wait(event->work, timeout_ns)) return report_cut_loops(*device);
    throw sdk::StatusError(PGR_STATUS_TIMED_OUT, "the event was not reached within " +
                                                     std::to_string(timeout_ns) + " ns");
  });
}

pgr_status event_time(pgr_device* device, pgr_event* event, uint64_t* out_ns, pgr_error* error) {
  return call(device, error, [&] {
    sdk::require(event != nullptr && out_ns != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "event_time: event or out_ns is NULL");
    sdk::require(device->facts.timestamp_bits > 0, PGR_STATUS_UNSUPPORTED,
                 "the device writes no timestamps");
    const bool is_reached = event->stream->reached(event->work);
    // repeated polling without a flush would never succeed
    if (!is_reached) event->stream->flush();
    sdk::require(is_reached, PGR_STATUS_NOT_READY, "the event was not reached yet");
    *out_ns =
        event->time_ns ? *event->time_ns : to_ns(*device, read_timestamp(*device, event->query));
  });
}

void event_destroy(pgr_device* device, pgr_event* event) {
  if (!event) return;
  if (!event->time_ns)
    sdk::guard(nullptr,
               [&] { give_back_query(*device, event->query, *event->stream, event->work); });
  delete event;
}

}  // namespace

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

}  // namespace plugrad::vulkan
