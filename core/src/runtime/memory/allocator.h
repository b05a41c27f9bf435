// Caches freed buffers of one device by size class and flags; counts and limits memory in use.
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
#include "runtime/queue/device_trace.h"
#include "runtime/queue/timeline.h"

namespace plugrad::runtime {

/// Rounds up to sixteen classes in each power of two, at least 256 bytes: at most 1/16 is wasted,
/// and similar sizes share buffers.
std::uint64_t size_class(std::uint64_t size_bytes);

/// Pending uses of recycled memory: the in-order queue uses it up to `after` (null: not at all),
/// and copy number `arrival` of the second queue fills it (0: none).
struct EarlierUse {
  QueuePlacePtr after;
  std::uint64_t arrival = 0;
};

/// A buffer for the in-order queue or, if it is idle, for a copy from the host beside the queue.
struct TakenBuffer {
  pgr_buffer* handle = nullptr;
  EarlierUse earlier;
  bool is_idle = false;
};

class Allocator {
 public:
  /// Keeps at most a quarter of `device_memory_bytes`, at least 256 MiB; 0: size unknown. Without
  /// `keep`, keeps nothing.
  Allocator(DeviceCalls& calls, const pgr_allocator_api& api, pgr_device* device,
            std::uint64_t device_memory_bytes, Timeline& timeline, bool keep = true);
  ~Allocator();
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;

  /// A buffer of at least `class_bytes`, a size class. Errors: OutOfMemoryError, and those of the
  /// plugin.
  TakenBuffer take(std::uint64_t class_bytes, std::uint32_t flags);
  /// The same for bytes from the host: a buffer that no work uses, if need be a new one; if two are
  /// already waiting, the one that will be free first.
  TakenBuffer take_idle(std::uint64_t class_bytes);
  /// `arrival`: number of the copy that fills it and that the in-order queue has not joined; 0:
  /// none.
  void give(pgr_buffer* buffer, std::uint64_t class_bytes, std::uint32_t flags,
            std::uint64_t arrival) noexcept;
  void flush();
  void set_reclaim(Reclaim reclaim);
  /// `wait` waits for the device, which may free memory only after its work.
  void set_wait(std::function<void()> wait) { wait_ = std::move(wait); }
  /// `trace` records what is taken and given while a trace is on.
  void set_trace(DeviceTrace* trace) { trace_ = trace; }
  MemoryStats stats() const;
  void reset_peak();

 private:
  using Key = std::pair<std::uint32_t, std::uint64_t>;  // flags, class

  struct Kept {
    pgr_buffer* handle;
    EarlierUse earlier;
  };
  using KeptList = std::deque<Kept>;  // in the order of give()

  TakenBuffer take_any(std::uint64_t class_bytes, std::uint32_t flags);
  TakenBuffer take_any_idle(std::uint64_t class_bytes);
  TakenBuffer recorded(TakenBuffer taken, std::uint64_t class_bytes);
  void record_given(std::uint64_t class_bytes, const pgr_buffer* buffer) noexcept;
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
  DeviceTrace* trace_ = nullptr;
};

}  // namespace plugrad::runtime
