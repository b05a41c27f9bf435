// "pgr.queue": the driver's in-order command queues; an event is a marker between two commands.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <optional>

#include "plugin.h"

namespace plugrad::opencl {
namespace {

// Set by the driver's callback; outlives the handle if the callback comes later.
struct Completion {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<cl_int> status;
};

}  // namespace
}  // namespace plugrad::opencl

struct pgr_event {
  cl_event handle = nullptr;
  std::mutex mutex;
  // created by the first wait with a timeout
  std::shared_ptr<plugrad::opencl::Completion> completion;

  ~pgr_event() {
    if (handle) plugrad::opencl::api().clReleaseEvent(handle);
  }
};

namespace plugrad::opencl {
namespace {

pgr_status create(pgr_device* device, pgr_queue** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    auto queue = std::make_unique<pgr_queue>(pgr_queue{make_queue(*device)});
    const std::lock_guard lock(device->queues_mutex);
    device->queues.insert(queue.get());
    *out = queue.release();
  });
}

void destroy_queue(pgr_device* device, pgr_queue* queue) {
  if (!queue) return;
  api().clFinish(queue->handle);
  {
    const std::lock_guard lock(device->queues_mutex);
    device->queues.erase(queue);
  }
  api().clReleaseCommandQueue(queue->handle);
  delete queue;
}

pgr_status finish(pgr_device* device, pgr_queue* queue, pgr_error* error) {
  return sdk::guard(error,
                    [&] { device->check(api().clFinish(queue_of(*device, queue)), "clFinish"); });
}

pgr_status record(pgr_device* device, pgr_queue* queue, pgr_event** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    auto event = std::make_unique<pgr_event>();
    const cl_command_queue on = queue_of(*device, queue);
    device->check(api().clEnqueueMarkerWithWaitList(on, 0, nullptr, &event->handle),
                  "clEnqueueMarkerWithWaitList");
    // Waiting on another queue does not flush this one.
    device->check(api().clFlush(on), "clFlush");
    *out = event.release();
  });
}

pgr_status wait(pgr_device* device, pgr_queue* queue, pgr_event* event, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    device->check(
        api().clEnqueueBarrierWithWaitList(queue_of(*device, queue), 1, &event->handle, nullptr),
        "clEnqueueBarrierWithWaitList");
  });
}

// CL_COMPLETE, a pending state (positive) or an error (negative).
cl_int status_of_event(pgr_device& device, cl_event event) {
  cl_int status = CL_QUEUED;
  device.check(api().clGetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status,
                                    &status, nullptr),
               "clGetEventInfo");
  return status;
}

void require_done(pgr_device& device, cl_int status) {
  if (status >= CL_COMPLETE) return;
  if (is_lost(status)) device.is_lost = true;
  throw sdk::StatusError(
      PGR_STATUS_LAUNCH_FAILED,
      "work before the event failed on " + device.facts.name + ": " + code_name(status), status);
}

Completion& completion_of(pgr_device& device, pgr_event& event) {
  const std::lock_guard lock(event.mutex);
  if (event.completion) return *event.completion;
  auto completion = std::make_shared<Completion>();
  auto told = std::make_unique<std::shared_ptr<Completion>>(completion);
  device.check(api().clSetEventCallback(
                   event.handle, CL_COMPLETE,
                   [](cl_event, cl_int status, void* context) {
                     const std::unique_ptr<std::shared_ptr<Completion>> owned(
                         static_cast<std::shared_ptr<Completion>*>(context));
                     const std::lock_guard guard((*owned)->mutex);
                     (*owned)->status = status;
                     (*owned)->changed.notify_all();
                   },
                   told.get()),
               "clSetEventCallback");
  told.release();
  event.completion = std::move(completion);
  return *event.completion;
}

pgr_status event_wait(pgr_device* device, pgr_event* event, uint64_t timeout_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    const cl_int now = status_of_event(*device, event->handle);
    if (now <= CL_COMPLETE) return require_done(*device, now);
    // Longer timeouts are unlimited: they would overflow the clock's sum.
    constexpr uint64_t kYearNs = uint64_t{365} * 24 * 3600 * 1'000'000'000;
    if (timeout_ns > kYearNs) {
      const cl_int code = api().clWaitForEvents(1, &event->handle);
      if (code != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST)
        device->check(code, "clWaitForEvents");
      return require_done(*device, status_of_event(*device, event->handle));
    }
    Completion& completion = completion_of(*device, *event);
    std::unique_lock lock(completion.mutex);
    const bool is_reached = completion.changed.wait_for(
        lock, std::chrono::nanoseconds(timeout_ns), [&] { return completion.status.has_value(); });
    sdk::require(is_reached, PGR_STATUS_TIMED_OUT,
                 "the event was not reached within " + std::to_string(timeout_ns) + " ns");
    require_done(*device, *completion.status);
  });
}

pgr_status event_time(pgr_device* device, pgr_event* event, uint64_t* out_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr && out_ns != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "event_time: event or out_ns is NULL");
    const cl_int status = status_of_event(*device, event->handle);
    sdk::require(status <= CL_COMPLETE, PGR_STATUS_NOT_READY, "the event was not reached yet");
    require_done(*device, status);
    *out_ns = event_ns(*device, event->handle, CL_PROFILING_COMMAND_END);
  });
}

void event_destroy(pgr_device*, pgr_event* event) {
  delete event;
}

}  // namespace

cl_command_queue make_queue(pgr_device& device) {
  cl_int code = CL_SUCCESS;
  const cl_command_queue queue =
      api().clCreateCommandQueue(device.context, device.facts.id, CL_QUEUE_PROFILING_ENABLE, &code);
  device.check(code, "clCreateCommandQueue");
  return queue;
}

void finish_all(pgr_device& device) {
  const std::lock_guard lock(device.queues_mutex);
  device.check(api().clFinish(device.queue), "clFinish");
  for (pgr_queue* queue : device.queues) device.check(api().clFinish(queue->handle), "clFinish");
}

uint64_t event_ns(pgr_device& device, cl_event event, cl_profiling_info which) {
  cl_ulong ns = 0;
  device.check(api().clGetEventProfilingInfo(event, which, sizeof ns, &ns, nullptr),
               "clGetEventProfilingInfo");
  return ns;
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

}  // namespace plugrad::opencl
