// How far a device has come with the work of its in-order queue: places between two pieces of work,
// which another queue or the host waits for without waiting for what was given later.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>

#include "plugrad/plugin_api/queue.h"
#include "runtime/queue/live_list.h"

namespace plugrad::runtime {

struct DeviceState;

/// Behind the first `number` pieces of work. Its event is recorded when more work comes and
/// somebody still holds the place.
class QueuePlace : public LiveNode<QueuePlace> {
 public:
  QueuePlace(DeviceState& device, std::uint64_t number);
  ~QueuePlace();
  QueuePlace(const QueuePlace&) = delete;
  QueuePlace& operator=(const QueuePlace&) = delete;

  std::uint64_t number() const { return number_; }
  /// The device is about to close.
  void forget_event() noexcept;

 private:
  friend class Timeline;
  DeviceState& device_;
  const std::uint64_t number_;
  pgr_event* event_ = nullptr;  // guarded by the device's queue_mutex until it is there
};
using QueuePlacePtr = std::shared_ptr<QueuePlace>;

/// Thread-safe. Of a device without queues and events it makes no places: all work is done.
class Timeline {
 public:
  explicit Timeline(DeviceState& device) : device_(device) {}

  /// Whether the device has what places need.
  bool is_kept() const;

  /// One call that gives the queue work; its maker holds the device's queue_mutex.
  class Work {
   public:
    explicit Work(Timeline& timeline);
    ~Work();
    Work(const Work&) = delete;
    Work& operator=(const Work&) = delete;

   private:
    Timeline* const timeline_;  // null: of a device that is done when a call returns
  };

  /// Behind all work that was given so far, a call that is under way included. Null where it is not
  /// kept.
  QueuePlacePtr here();
  /// Whether work was given behind it.
  bool has_passed(const QueuePlace& place) const;
  /// Whether the device has come there. Does not wait.
  bool is_reached(QueuePlace& place);
  /// Returns when the device has come there. Errors: Device, for work before it too.
  void wait(QueuePlace& place);
  /// Later work of the queue, which the caller has to itself, starts behind the place.
  void let_wait(pgr_queue* queue, QueuePlace& place);

  /// Pieces of work that were given, and of which it is not known that they are done.
  bool has_work() const;
  /// What a wait for the device that begins now covers, and its good end.
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
  QueuePlacePtr current_;  // here(), where somebody asked
  std::uint64_t given_ = 0, waited_ = 0;
  bool is_giving_ = false;
};

}  // namespace plugrad::runtime
