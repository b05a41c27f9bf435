#include "clock.h"

#include <time.h>

#include "plugin.h"

namespace plugrad::cuda {
namespace {

constexpr uint64_t kEpochNs = 500'000'000;

}  // namespace

uint64_t host_now_ns() {
  timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

Event::Event(pgr_device& device) : device_(device) {
  check(device, device.driver->event_create(&handle_, 0), "cuEventCreate");
}

// The device may already be lost; then there is nothing to release.
Event::~Event() {
  sdk::guard(nullptr, [&] {
    const ContextScope scope(device_);
    device_.driver->event_destroy(handle_);
  });
}

DeviceClock::DeviceClock(pgr_device& device) : device_(device) {
  check(device, device.driver->stream_create(&stream_, kStreamNonBlocking), "cuStreamCreate");
}

DeviceClock::~DeviceClock() {
  current_.reset();
  sdk::guard(nullptr, [&] {
    const ContextScope scope(device_);
    device_.driver->stream_destroy(stream_);
  });
}

// On an idle stream, so that the event completes immediately.
std::shared_ptr<const Epoch> DeviceClock::make_epoch() {
  const Driver& driver = *device_.driver;
  auto made = std::make_shared<Epoch>(device_);
  check(device_, driver.event_record(made->event.handle(), stream_), "cuEventRecord");
  check(device_, driver.event_synchronize(made->event.handle()), "cuEventSynchronize");
  made->host_ns = host_now_ns();
  if (current_) made->device_ns = time_ns(*current_, made->event);
  return made;
}

std::shared_ptr<const Epoch> DeviceClock::epoch() {
  const std::lock_guard lock(mutex_);
  if (!current_ || host_now_ns() - current_->host_ns > kEpochNs) current_ = make_epoch();
  return current_;
}

uint64_t DeviceClock::time_ns(const Epoch& epoch, const Event& event) {
  float ms = 0;
  check(device_, device_.driver->event_elapsed(&ms, epoch.event.handle(), event.handle()),
        "cuEventElapsedTime");
  return epoch.device_ns + static_cast<uint64_t>(ms > 0 ? double{ms} * 1e6 : 0.0);
}

uint64_t DeviceClock::now_ns() {
  const std::lock_guard lock(mutex_);
  current_ = make_epoch();
  return current_->device_ns;
}

}  // namespace plugrad::cuda
