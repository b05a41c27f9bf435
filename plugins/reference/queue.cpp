// "pgr.queue": a queue is a thread; an event is a marker in its work.
#include <algorithm>
#include <chrono>

#include "work_queue.h"

namespace plugrad::reference {
namespace {

// Shared by the handle and the work that signals it or waits for it.
class EventState {
 public:
  void mark(uint64_t time_ns, std::optional<sdk::StatusError> failure) {
    {
      const std::lock_guard lock(mutex_);
      time_ns_ = time_ns;
      failure_ = std::move(failure);
      is_reached_ = true;
    }
    reached_.notify_all();
  }
  // Throws if earlier work failed.
  bool wait(std::chrono::nanoseconds timeout) {
    std::unique_lock lock(mutex_);
    if (!reached_.wait_for(lock, timeout, [&] { return is_reached_; })) return false;
    if (failure_) throw *failure_;
    return true;
  }
  void wait_for_ever() {
    std::unique_lock lock(mutex_);
    reached_.wait(lock, [&] { return is_reached_; });
  }
  std::optional<uint64_t> time_ns() {
    const std::lock_guard lock(mutex_);
    return is_reached_ ? std::optional(time_ns_) : std::nullopt;
  }

 private:
  std::mutex mutex_;
  std::condition_variable reached_;
  bool is_reached_ = false;
  uint64_t time_ns_ = 0;
  std::optional<sdk::StatusError> failure_;
};

}  // namespace
}  // namespace plugrad::reference

struct pgr_event {
  std::shared_ptr<plugrad::reference::EventState> state;
};

namespace plugrad::reference {
namespace {

pgr_status create(pgr_device* device, pgr_queue** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_queue, "pgr.queue");
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    auto queue = std::make_unique<pgr_queue>(pgr_queue{std::make_shared<WorkQueue>()});
    const std::lock_guard lock(device->queues_mutex);
    device->queues.push_back(queue->work);
    *out = queue.release();
  });
}

void destroy_queue(pgr_device* device, pgr_queue* queue) {
  if (!queue) return;
  sdk::guard(nullptr, [&] { queue->work->finish(); });
  {
    const std::lock_guard lock(device->queues_mutex);
    std::erase(device->queues, queue->work);
  }
  delete queue;
}

pgr_status finish(pgr_device* device, pgr_queue* queue, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_queue, "pgr.queue");
    if (WorkQueue* worker = work_queue_of(*device, queue)) worker->finish();
  });
}

pgr_status record(pgr_device* device, pgr_queue* queue, pgr_event** out, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_queue, "pgr.queue");
    sdk::require(out != nullptr, PGR_STATUS_INVALID_ARGUMENT, "out is NULL");
    auto event = std::make_unique<pgr_event>(pgr_event{std::make_shared<EventState>()});
    // The work ends before its queue is destroyed, so that the pointer stays valid.
    WorkQueue* work = work_queue_of(*device, queue);
    submit(*device, queue,
           {[device, work, state = event->state] {
              state->mark(device_now_ns(*device), work ? work->failure() : std::nullopt);
            },
            {}});
    *out = event.release();
  });
}

pgr_status wait(pgr_device* device, pgr_queue* queue, pgr_event* event, pgr_error* error) {
  return sdk::guard(error, [&] {
    require_interface(device->claims.has_queue, "pgr.queue");
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    submit(*device, queue, {[state = event->state] { state->wait_for_ever(); }, {}});
  });
}

pgr_status event_wait(pgr_device*, pgr_event* event, uint64_t timeout_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr, PGR_STATUS_INVALID_ARGUMENT, "event is NULL");
    // Longer timeouts are unlimited: they would overflow the clock's sum.
    constexpr uint64_t kYearNs = uint64_t{365} * 24 * 3600 * 1'000'000'000;
    if (timeout_ns > kYearNs) event->state->wait_for_ever();
    const auto timeout = std::chrono::nanoseconds(std::min(timeout_ns, kYearNs));
    sdk::require(event->state->wait(timeout), PGR_STATUS_TIMED_OUT,
                 "the event was not reached within " + std::to_string(timeout_ns) + " ns");
  });
}

pgr_status event_time(pgr_device*, pgr_event* event, uint64_t* out_ns, pgr_error* error) {
  return sdk::guard(error, [&] {
    sdk::require(event != nullptr && out_ns != nullptr, PGR_STATUS_INVALID_ARGUMENT,
                 "event_time: event or out_ns is NULL");
    const std::optional<uint64_t> time_ns = event->state->time_ns();
    sdk::require(time_ns.has_value(), PGR_STATUS_NOT_READY, "the event was not reached yet");
    *out_ns = *time_ns;
  });
}

void event_destroy(pgr_device*, pgr_event* event) {
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

}  // namespace plugrad::reference
