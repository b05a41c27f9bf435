// The device's clock: nanoseconds between events since the device was opened.
#pragma once

#include <memory>
#include <mutex>

#include "driver.h"

struct pgr_device;

namespace plugrad::cuda {

// An event that is owned.
class Event {
 public:
  explicit Event(pgr_device& device);
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  CUevent handle() const { return handle_; }

 private:
  pgr_device& device_;
  CUevent handle_ = nullptr;
};

// A moment that later events are timed from.
struct Epoch {
  explicit Epoch(pgr_device& device) : event(device) {}
  Event event;
  uint64_t device_ns = 0, host_ns = 0;
};

// The driver tells the time between two events in milliseconds as a float, which is exact to
// nanoseconds only while they are near each other: so the moment that they are timed from moves on.
class DeviceClock {
 public:
  explicit DeviceClock(pgr_device& device);
  ~DeviceClock();

  // For an event that is about to be recorded.
  std::shared_ptr<const Epoch> epoch();
  // Of an event that was reached.
  uint64_t time_ns(const Epoch& epoch, const Event& event);
  uint64_t now_ns();

 private:
  std::shared_ptr<const Epoch> make_epoch();

  pgr_device& device_;
  CUstream stream_ = nullptr;
  std::mutex mutex_;
  std::shared_ptr<const Epoch> current_;
};

uint64_t host_now_ns();

}  // namespace plugrad::cuda
