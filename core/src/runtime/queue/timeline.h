// Tracks the progress of a device's in-order queue: another queue or the host can wait for a place
// between two pieces of work without waiting for later work.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "plugrad/plugin_api/queue.h"
#include "runtime/queue/live_list.h"

namespace plugrad::runtime {

struct DeviceState;

/// The place after the first `number` pieces of work. Its event is recorded when more work comes
/// while the place is shared.
class QueuePlace : public LiveNode<QueuePlace> {
 public:
  QueuePlace(DeviceState& device, std::uint64_t number);
  ~QueuePlace();
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;

  std::uint64_t number() const { return number_; }
  /// Called before the device closes.
  void forget_event() noexcept;

 private:
  friend class Timeline;
  DeviceState& device_;
  const std::uint64_t number_;
  pgr_event* event_ = nullptr;  // guarded by queue_mutex until it is set
};
using QueuePlacePtr = std::shared_ptr<QueuePlace>;

/// Thread-safe. For a device without queues and events it makes no places: work is always finished.
class Timeline {
 public:
  explicit Timeline(DeviceState& device) : device_(device) {}

  /// Whether the device has the functions that places need.
  bool is_kept() const;

  /// One call that gives work to the queue; requires the device's queue_mutex.
  class Work {
   public:
    explicit Work(Timeline& timeline);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Timeline* const timeline_;  // null for a synchronous device
  };

  /// The place after all work given so far, including a call in progress. Null if the device keeps
  /// no places.
  QueuePlacePtr here();
  /// Whether work was given after the place.
  bool has_passed(const QueuePlace& place) const;
  /// Whether the device has reached the place. Does not wait.
  bool is_reached(QueuePlace& place);
  /// Waits until the device has reached the place. Errors: Device, also for work before it.
  void wait(QueuePlace& place);
  /// Makes later work of `queue` wait for the place. Requires exclusive use of the queue.
  void let_wait(pgr_queue* queue, QueuePlace& place);

  /// Whether given work may be unfinished.
  bool has_work() const;
  /// Number of pieces of work that a wait beginning now covers; waited() reports that it succeeded.
  std::uint64_t count() const;
  void waited(std::uint64_t count);

  void shut_down() noexcept;

 private:
  friend class QueuePlace;
  pgr_event* event_of(QueuePlace& place);
  void record(QueuePlace& place);
  std::uint64_t begun() const { return given_ + (is_giving_ ? 1 : 0); }

  DeviceState& device_;
  mutable std::mutex mutex_;
  LiveList<QueuePlace> places_;
  QueuePlacePtr current_;  // here(), once requested
  std::uint64_t given_ = 0, waited_ = 0;
  bool is_giving_ = false;
};

}  // namespace plugrad::runtime
