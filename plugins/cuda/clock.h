// The device's clock: nanoseconds between events since the device was opened.
#pragma once

#include <memory>
#include <mutex>

#include "driver.h"

struct pgr_device;

namespace plugrad::cuda {

// An owning event handle.
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

// Reference event for the times of later events.
struct Epoch {
  explicit Epoch(pgr_device& device) : event(device) {}
  Event event;
  uint64_t device_ns = 0, host_ns = 0;
};

// The driver gives the time between two events in milliseconds as a float, which is exact to
// nanoseconds only for short intervals: the reference event is renewed.
class DeviceClock {
 public:
  explicit DeviceClock(pgr_device& device);
  ~DeviceClock();

  // The reference for an event that is about to be recorded.
  std::shared_ptr<const Epoch> epoch();
  // Time of a completed event.
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
