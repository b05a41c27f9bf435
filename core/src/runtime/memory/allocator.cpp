#include "runtime/memory/allocator.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "base/settings.h"
#include "runtime/memory/format_size.h"

namespace plugrad::runtime {
namespace {

constexpr std::uint64_t kSmallestClass = 256;
constexpr std::uint64_t kLeastKept = 256u << 20;
constexpr size_t kMostWaitingBuffers = 2;  // buffers of a class that may wait for the device

void log_event(const std::string& device, const char* event, std::uint64_t bytes) noexcept try {
  if (debugging(5)) [[unlikely]]
    debug_write(fmt::format("{}: {} {}\n", device, event, format_size(bytes)));
} catch (...) {  // freeing must not throw, and a message may be lost
}

}  // namespace

std::uint64_t size_class(std::uint64_t size_bytes) {
  if (size_bytes <= kSmallestClass) return kSmallestClass;
  const auto top_bit = std::bit_width(size_bytes) - 1;
  std::uint64_t step = std::uint64_t{1} << (top_bit - 4);
  if (size_bytes > UINT64_MAX - step) return size_bytes;
  return (size_bytes + step - 1) / step * step;
}

Allocator::Allocator(DeviceCalls& calls, const pgr_allocator_api& api, pgr_device* device,
                     std::uint64_t device_memory_bytes, Timeline& timeline, bool keep)
    : calls_(calls),
      timeline_(timeline),
      api_(api),
      device_(device),
      device_bytes_(device_memory_bytes),
      keep_bytes_(keep ? std::max(device_memory_bytes / 4, kLeastKept) : 0) {}

Allocator::~Allocator() {
  flush();
}

TakenBuffer Allocator::recorded(TakenBuffer taken, std::uint64_t class_bytes) {
  if (!trace_ || !tracing()) return taken;
  const MemoryStats now = stats();
  trace_->memory(now.used_bytes, now.cached_bytes, static_cast<std::int64_t>(class_bytes),
                 taken.handle);
  return taken;
}

TakenBuffer Allocator::take(std::uint64_t class_bytes, std::uint32_t flags) {
  return recorded(take_any(class_bytes, flags), class_bytes);
}

TakenBuffer Allocator::take_idle(std::uint64_t class_bytes) {
  return recorded(take_any_idle(class_bytes), class_bytes);
}

TakenBuffer Allocator::take_any(std::uint64_t class_bytes, std::uint32_t flags) {
  if (const TakenBuffer buffer = take_cached(class_bytes, flags); buffer.handle) {
    log_event(calls_.device_name(), "reuse", class_bytes);
    return buffer;
  }
  ask_to_reclaim(class_bytes, false);
  if (const TakenBuffer buffer = take_cached(class_bytes, flags); buffer.handle) return buffer;
  if (!reserve(class_bytes)) {
    flush();
    ask_to_reclaim(class_bytes, true);
    if (const TakenBuffer buffer = take_cached(class_bytes, flags); buffer.handle) return buffer;
    flush();
    if (!reserve(class_bytes)) throw_out_of_memory(class_bytes, "");
  }
  return {take_fresh(class_bytes, flags), {}, false};
}

TakenBuffer Allocator::take_any_idle(std::uint64_t class_bytes) {
  if (const TakenBuffer buffer = take_oldest(class_bytes); buffer.handle) return buffer;
  ask_to_reclaim(class_bytes, false);
  if (const TakenBuffer buffer = take_oldest(class_bytes); buffer.handle) return buffer;
  if (reserve(class_bytes)) return {take_fresh(class_bytes, 0), {}, true};
  TakenBuffer buffer = take_any(class_bytes, 0);
  buffer.is_idle = true;
  return buffer;
}

// Takes the buffer kept longest if the device has finished with it or another waits behind it. Asks
// the device without holding the lock.
TakenBuffer Allocator::take_oldest(std::uint64_t class_bytes) {
  QueuePlacePtr oldest;
  size_t count = 0;
  {
    std::lock_guard lock(mutex_);
    const KeptList* const list = kept_of(class_bytes, 0);
    if (!list) return {};
    oldest = list->front().earlier.after;
    count = list->size();
  }
  if (count < kMostWaitingBuffers && oldest && !timeline_.is_reached(*oldest)) return {};
  std::lock_guard lock(mutex_);
  KeptList* const list = kept_of(class_bytes, 0);
  return list ? count_out(*list, true, class_bytes) : TakenBuffer();
}

// Null if no buffer is kept, or none may be used. Requires the lock.
Allocator::KeptList* Allocator::kept_of(std::uint64_t class_bytes, std::uint32_t flags) {
  const auto found = cached_.find({flags, class_bytes});
  const bool is_there = found != cached_.end() && !found->second.empty();
  return is_there && !over_limit(class_bytes) ? &found->second : nullptr;
}

TakenBuffer Allocator::take_cached(std::uint64_t class_bytes, std::uint32_t flags) {
  if (flags & PGR_ALLOC_ZERO) return {};
  std::lock_guard lock(mutex_);
  KeptList* const list = kept_of(class_bytes, flags);
  return list ? count_out(*list, false, class_bytes) : TakenBuffer();
}

// Requires the lock. The buffer freed last is warm in caches; the oldest is idle first.
TakenBuffer Allocator::count_out(KeptList& list, bool oldest, std::uint64_t class_bytes) {
  Kept& kept = oldest ? list.front() : list.back();
  const TakenBuffer buffer{kept.handle, std::move(kept.earlier), oldest};
  if (oldest)
    list.pop_front();
  else
    list.pop_back();
  stats_.cached_bytes -= class_bytes;
  stats_.used_bytes += class_bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.used_bytes);
  ++stats_.reuses;
  return buffer;
}

// Counts the bytes as used before calling the plugin, so that concurrent threads stay within the
// limit.
bool Allocator::reserve(std::uint64_t class_bytes) {
  std::lock_guard lock(mutex_);
  std::uint64_t limit = settings().memory_limit_bytes;
  if (over_limit(class_bytes)) return false;
  if (limit && stats_.used_bytes + stats_.cached_bytes + class_bytes > limit) return false;
  stats_.used_bytes += class_bytes;
  stats_.peak_bytes = std::max(stats_.peak_bytes, stats_.used_bytes);
  ++stats_.allocations;
  return true;
}

void Allocator::unreserve(std::uint64_t class_bytes) {
  std::lock_guard lock(mutex_);
  stats_.used_bytes -= class_bytes;
  --stats_.allocations;
}

bool Allocator::over_limit(std::uint64_t class_bytes) const {
  std::uint64_t limit = settings().memory_limit_bytes;
  return limit != 0 && (class_bytes > limit || stats_.used_bytes > limit - class_bytes);
}

// The plugin may be out of memory below the limit: retries after freeing kept buffers, and again
// after reclaiming everything possible.
pgr_buffer* Allocator::take_fresh(std::uint64_t class_bytes, std::uint32_t flags) {
  pgr_alloc_desc desc;
  PGR_INIT(desc, ALLOC_DESC);
  desc.size_bytes = class_bytes;
  desc.flags = flags;
  for (int attempt = 0;; ++attempt) {
    pgr_buffer* buffer = nullptr;
    CallError error;
    std::string escaped;
    const WatchedCall watched(calls_, "alloc");
    pgr_status status = guarded(
        error, escaped, [&](pgr_error* e) { return api_.alloc(device_, &desc, &buffer, e); });
    if (status == PGR_STATUS_OK && buffer) {
      log_event(calls_.device_name(), "alloc", class_bytes);
      return buffer;
    }
    bool exhausted = status == PGR_STATUS_OUT_OF_MEMORY || status == PGR_STATUS_OUT_OF_HOST_MEMORY;
    std::string said = escaped.empty() ? error.message() : escaped;
    if (!exhausted || attempt == 2) unreserve(class_bytes);
    if (!exhausted)
      calls_.fail("alloc", format_size(class_bytes), status ? status : PGR_STATUS_INTERNAL, said);
    if (attempt == 2) throw_out_of_memory(class_bytes, said);
    if (attempt == 1) ask_to_reclaim(class_bytes, true);
    flush();
    if (wait_) wait_();
  }
}

// Freeing must not throw, and an event may be lost.
void Allocator::record_given(std::uint64_t class_bytes, const pgr_buffer* buffer) noexcept try {
  if (!trace_ || !tracing()) return;
  const MemoryStats now = stats();
  trace_->memory(now.used_bytes, now.cached_bytes, -static_cast<std::int64_t>(class_bytes), buffer);
} catch (...) {
}

void Allocator::give(pgr_buffer* buffer, std::uint64_t class_bytes, std::uint32_t flags,
                     std::uint64_t arrival) noexcept {
  flags &= ~PGR_ALLOC_ZERO;  // its contents are no longer zero
  bool keep = false;
  {
    std::lock_guard lock(mutex_);
    stats_.used_bytes -= class_bytes;
    keep = stats_.cached_bytes + class_bytes <= keep_bytes_;
    if (keep) {
      try {
        cached_[{flags, class_bytes}].push_back({buffer, {timeline_.here(), arrival}});
        stats_.cached_bytes += class_bytes;
      } catch (...) {  // no host memory for the list
        keep = false;
      }
    }
  }
  record_given(class_bytes, buffer);
  if (!keep) free(buffer);
  log_event(calls_.device_name(), keep ? "keep" : "free", class_bytes);
}

void Allocator::free(pgr_buffer* buffer) noexcept {
  calls_.quietly("free", [&] { api_.free(device_, buffer); });
}

void Allocator::flush() {
  std::map<Key, KeptList> all;
  std::uint64_t bytes = 0;
  {
    std::lock_guard lock(mutex_);
    all.swap(cached_);
    bytes = std::exchange(stats_.cached_bytes, 0);
  }
  if (bytes) log_event(calls_.device_name(), "flush", bytes);
  for (auto& [key, buffers] : all)
    for (const Kept& kept : buffers) free(kept.handle);
}

void Allocator::set_reclaim(Reclaim reclaim) {
  std::lock_guard lock(mutex_);
  reclaim_ = std::move(reclaim);
}

void Allocator::ask_to_reclaim(std::uint64_t class_bytes, bool must) {
  Reclaim reclaim;
  {
    std::lock_guard lock(mutex_);
    reclaim = reclaim_;
  }
  if (reclaim) reclaim(class_bytes, must);
}

MemoryStats Allocator::stats() const {
  std::lock_guard lock(mutex_);
  MemoryStats out = stats_;
  out.limit_bytes = settings().memory_limit_bytes;
  return out;
}

void Allocator::reset_peak() {
  std::lock_guard lock(mutex_);
  stats_.peak_bytes = stats_.used_bytes;
}

void Allocator::throw_out_of_memory(std::uint64_t class_bytes, const std::string& said) const {
  MemoryStats now = stats();
  std::string limit = now.limit_bytes ? fmt::format(", limit {} (PLUGRAD_MEMORY_LIMIT)",
                                                    format_size(now.limit_bytes))
                                      : "";
  std::string all = device_bytes_ ? " of " + format_size(device_bytes_) : "";
  throw OutOfMemoryError(
      class_bytes,
      fmt::format("[alloc] {} is out of memory: {} wanted, {}{} in use{}{}{}; free tensors or use "
                  "smaller batches{}",
                  calls_.device_name(), format_size(class_bytes), format_size(now.used_bytes), all,
                  limit, said.empty() ? "" : ": ", said,
                  now.limit_bytes ? ", or raise the limit" : ""));
}

}  // namespace plugrad::runtime
