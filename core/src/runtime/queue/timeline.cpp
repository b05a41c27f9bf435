#include "runtime/queue/timeline.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/binding.h"
#include "runtime/device/device_state.h"

namespace plugrad::runtime {

QueuePlace::QueuePlace(DeviceState& device, std::uint64_t number)
    : device_(device), number_(number) {
  device_.timeline.places_.add(*this);
}

QueuePlace::~QueuePlace() {
  device_.timeline.places_.remove(*this);
  if (device_.calls.is_reachable()) forget_event();
}

void QueuePlace::forget_event() noexcept {
  if (!event_) return;
  device_.calls.quietly("event_destroy",
                        [&] { device_.queue.event_destroy(device_.handle, event_); });
  event_ = nullptr;
}

bool Timeline::is_kept() const {
  const pgr_queue_api& q = device_.queue;
  return device_.is_asynchronous && offered(q.record) && offered(q.wait) && offered(q.event_wait) &&
         offered(q.event_destroy);
}

// Records the event of the previous place if it is shared and the device may not have reached it.
Timeline::Work::Work(Timeline& timeline)
    : timeline_(timeline.device_.is_asynchronous ? &timeline : nullptr) {
  if (!timeline_) return;
  std::unique_lock lock(timeline.mutex_);
  const QueuePlacePtr left = timeline.current_.use_count() > 1 ? timeline.current_ : nullptr;
  if (left && !left->event_ && left->number() > timeline.waited_) {
    lock.unlock();
    timeline.record(*left);
    lock.lock();
  }
  timeline.current_ = nullptr;
  timeline.is_giving_ = true;
}

Timeline::Work::~Work() {
  if (!timeline_) return;
  const std::lock_guard lock(timeline_->mutex_);
  ++timeline_->given_;
  timeline_->is_giving_ = false;
}

QueuePlacePtr Timeline::here() {
  if (!is_kept()) return nullptr;
  const std::lock_guard lock(mutex_);
  if (!current_) current_ = std::make_shared<QueuePlace>(device_, begun());
  return current_;
}

bool Timeline::has_passed(const QueuePlace& place) const {
  const std::lock_guard lock(mutex_);
  return place.number() < begun();
}

bool Timeline::has_work() const {
  const std::lock_guard lock(mutex_);
  return waited_ < begun();
}

std::uint64_t Timeline::count() const {
  const std::lock_guard lock(mutex_);
  return given_;
}

void Timeline::waited(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  waited_ = std::max(waited_, count);
}

// Requires queue_mutex. Records the event after the last work given: at the place or later.
void Timeline::record(QueuePlace& place) {
  pgr_event* event = nullptr;
  device_.calls.check("record", [&](pgr_error* e) {
    return device_.queue.record(device_.handle, nullptr, &event, e);
  });
  place.event_ = event;
}

pgr_event* Timeline::event_of(QueuePlace& place) {
  const std::lock_guard lock(device_.queue_mutex);
  if (!place.event_) record(place);
  return place.event_;
}

bool Timeline::is_reached(QueuePlace& place) {
  {
    const std::lock_guard lock(mutex_);
    if (place.number() <= waited_) return true;
    if (place.number() >= begun()) return false;  // the newest place: record no event for a query
  }
  pgr_event* const event = event_of(place);
  CallError error;
  std::string escaped;
  const pgr_status status = guarded(error, escaped, [&](pgr_error* e) {
    return device_.queue.event_wait(device_.handle, event, 0, e);
  });
  if (status != PGR_STATUS_OK) return false;  // wait() reports the failure
  waited(place.number());
  return true;
}

namespace {

/// Waits for the event; returns early with the exception of an interruption check.
pgr_status wait_for_event(DeviceState& device, pgr_event* event, std::exception_ptr& interruption,
                          pgr_error* error) {
  constexpr std::uint64_t kBetweenPollsNs = 100'000'000;  // chosen, not measured: below a second
  for (;;) {
    const std::uint64_t longest_ns = polls_interruption() ? kBetweenPollsNs : UINT64_MAX;
    const pgr_status status = device.queue.event_wait(device.handle, event, longest_ns, error);
    if (status != PGR_STATUS_TIMED_OUT || longest_ns == UINT64_MAX) return status;
    try {
      poll_interruption();
    } catch (...) {
      interruption = std::current_exception();
      return PGR_STATUS_OK;
    }
  }
}

}  // namespace

void Timeline::wait(QueuePlace& place) {
  {
    const std::lock_guard lock(mutex_);
    if (place.number() <= waited_) return;
  }
  pgr_event* const event = event_of(place);
  const std::uint64_t begin_ns = tracing() ? monotonic_ns() : 0;
  std::exception_ptr interruption;
  device_.calls.check(
      "event_wait", [&](pgr_error* e) { return wait_for_event(device_, event, interruption, e); });
  if (interruption) std::rethrow_exception(interruption);
  if (begin_ns != 0) device_.trace.waited(begin_ns);
  waited(place.number());
}

void Timeline::let_wait(pgr_queue* queue, QueuePlace& place) {
  {
    const std::lock_guard lock(mutex_);
    if (place.number() <= waited_) return;
  }
  pgr_event* const event = event_of(place);
  device_.calls.check(
      "wait", [&](pgr_error* e) { return device_.queue.wait(device_.handle, queue, event, e); });
}

void Timeline::shut_down() noexcept {
  {
    const std::lock_guard lock(mutex_);
    current_ = nullptr;
  }
  places_.each([](QueuePlace& place) { place.forget_event(); });
}

}  // namespace plugrad::runtime
