// Records a device's launches and copies in the trace, with the device's own clock where it has
// one. Never waits, and never changes what runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <utility>

#include "base/trace/json_line.h"
#include "base/trace/trace.h"
#include "plugrad/plugin_api/queue.h"

namespace plugrad::runtime {

class Kernel;
struct DeviceState;

/// The step of a plan that a launch runs; plan 0: none.
struct LaunchOrigin {
  std::uint32_t plan = 0;
  std::int32_t step = -1;
};

/// Thread-safe. Work of an asynchronous queue gets an event behind it, whose time is its end; it
/// begins when it was given or, if that is later, when the work before it ended. It was given when
/// the plugin's call returned, as a driver may compile in the call, or when the call began if it
/// ended within the call. Without a clock of the device, an end is the time at which the host saw
/// the event.
class DeviceTrace {
 public:
  enum Queue : std::uint8_t { kMain, kTransfers };

  explicit DeviceTrace(DeviceState& device) : device_(device) {}

  // Call these while tracing(), after the call that gave the work and under the queue's lock.
  // `handle` is the plugin's queue, null for the in-order one.
  // `measured_ns`: the driver's time of the launch; 0: not asked for.
  void launched(const Kernel& kernel, std::uint64_t submit_ns, LaunchOrigin origin,
                std::uint64_t measured_ns = 0);
  void copied(Queue queue, pgr_queue* handle, trace::Direction direction, std::uint64_t bytes,
              std::uint64_t submit_ns);

  void waited(std::uint64_t begin_ns);
  void memory(std::uint64_t used_bytes, std::uint64_t cached_bytes, std::int64_t change_bytes,
              const pgr_buffer* buffer);

  /// Its name in the trace, before the first event; otherwise the device's.
  void set_name(std::string name) { name_ = std::move(name); }
  /// The device's id in the trace, which the first call defines.
  std::uint32_t id();

  /// Records the work that the device has finished; with a timeout, waits for all of it.
  void collect(std::uint64_t timeout_ns) noexcept;
  /// Called before the queues are destroyed.
  void shut_down() noexcept;

 private:
  enum class Clock : std::uint8_t { Unknown, Device, Seen, Synchronous };
  struct Work {
    pgr_event* event;
    std::uint64_t submit_ns, returned_ns;
    std::uint64_t measured_ns;  // 0: not measured
    bool is_launch;
    trace::Launch launch;
    trace::Copy copy;
  };
  struct Track {
    std::uint32_t id = 0;
    std::uint64_t last_end_ns = 0;
    std::deque<Work> pending;
  };

  void define();
  void choose_clock();
  void calibrate();
  void add(Queue queue, pgr_queue* handle, Work work);
  void collect_from(Track& track, std::uint64_t timeout_ns);
  bool has_ended(pgr_event* event, std::uint64_t timeout_ns, std::uint64_t& end_ns);
  void finish(Track& track, Work& work, std::uint64_t end_ns);
  std::uint32_t id_of(const Kernel& kernel);

  DeviceState& device_;
  std::string name_;                  // empty: the device's
  std::mutex mutex_;                  // of all below
  std::atomic<std::uint32_t> id_{0};  // read without the mutex
  Track tracks_[2];
  Clock clock_ = Clock::Unknown;
  std::int64_t offset_ns_ = 0;  // host time less device time
  std::uint64_t error_ns_ = 0, calibrated_ns_ = 0;
};

/// The line that defines a kernel in the trace, with the facts that the runtime has.
trace::JsonLine kernel_line(std::uint32_t id, std::uint32_t device, const Kernel& kernel);

}  // namespace plugrad::runtime
