// Keeps freed buffers of one device for reuse, by size class and flags; counts and limits what is
// in use.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/device_calls.h"
#include "runtime/device/tables.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

/// Sizes are rounded up to sixteen classes in each power of two: at most 1/16 is wasted, and sizes
/// that differ a little share buffers. At least 256 bytes.
std::uint64_t size_class(std::uint64_t size_bytes);

/// What may still be done with memory that is used again: the in-order queue works with it up to
/// `after` (null: it does not), and the copy with that number of the second queue fills it (0:
/// none).
struct EarlierUse {
  QueuePlacePtr after;
  std::uint64_t arrival = 0;
};

/// A buffer for use on the in-order queue or, where it is idle, for a copy from the host beside it.
struct TakenBuffer {
  pgr_buffer* handle = nullptr;
  EarlierUse earlier;
  bool is_idle = false;
};

class Allocator {
 public:
  /// `device_memory_bytes` bounds what is kept: a quarter of it, at least 256 MiB. 0: unknown.
  /// Without `keep`, nothing is kept.
  Allocator(DeviceCalls& calls, const pgr_allocator_api& api, pgr_device* device,
            std::uint64_t device_memory_bytes, Timeline& timeline, bool keep = true);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// A buffer of at least `class_bytes`, a size class. Errors: OutOfMemoryError, and what the
  /// plugin reports.
  TakenBuffer take(std::uint64_t class_bytes, std::uint32_t flags);
  /// The same for what the host will copy in: one that no work uses any more, be it new; where two
  /// wait already, the one that will be free first.
  TakenBuffer take_idle(std::uint64_t class_bytes);
  /// `arrival`: of the copy that fills it, of which the in-order queue does not know yet; 0: none.
  void give(pgr_buffer* buffer, std::uint64_t class_bytes, std::uint32_t flags,
            std::uint64_t arrival) noexcept;
  void flush();
  void set_reclaim(Reclaim reclaim);
  /// How to wait for the device, which may free memory only when the work on it is done.
  void set_wait(std::function<void()> wait) { wait_ = std::move(wait); }
  MemoryStats stats() const;
  void reset_peak();

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // flags, class

  struct Kept {
    pgr_buffer* handle;
    EarlierUse earlier;
  };
  using KeptList = std::deque<Kept>;  // in the order in which they were given

  KeptList* kept_of(std::uint64_t class_bytes, std::uint32_t flags);
  TakenBuffer count_out(KeptList& list, bool oldest, std::uint64_t class_bytes);
  TakenBuffer take_oldest(std::uint64_t class_bytes);
  TakenBuffer take_cached(std::uint64_t class_bytes, std::uint32_t flags);
  pgr_buffer* take_fresh(std::uint64_t class_bytes, std::uint32_t flags);
  void free(pgr_buffer* buffer) noexcept;
  bool reserve(std::uint64_t class_bytes);
  void unreserve(std::uint64_t class_bytes);
  bool over_limit(std::uint64_t class_bytes) const;
  void ask_to_reclaim(std::uint64_t class_bytes, bool must);
  [[noreturn]] void throw_out_of_memory(std::uint64_t class_bytes, const std::string& said) const;

  DeviceCalls& calls_;
  Timeline& timeline_;
  const pgr_allocator_api& api_;
  pgr_device* const device_;
  const std::uint64_t device_bytes_, keep_bytes_;
  mutable std::mutex mutex_;
  std::map<Key, KeptList> cached_;
  MemoryStats stats_;
  Reclaim reclaim_;
  std::function<void()> wait_;
};

}  // namespace plugrad::runtime
