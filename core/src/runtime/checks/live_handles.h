// Tracks live handles of one kind, e.g. events.
#pragma once

#include <fmt/format.h>

#include <mutex>
#include <string>
#include <unordered_set>

namespace plugrad::runtime {

class LiveHandles {
 public:
  explicit LiveHandles(const char* kind) : kind_(kind) {}

  void add(const void* handle) {
    const std::lock_guard lock(mutex_);
    live_.insert(handle);
    gone_.erase(handle);
  }
  bool remove(const void* handle) {
    const std::lock_guard lock(mutex_);
    if (gone_.size() >= kMostGone) gone_.clear();
    gone_.insert(handle);
    return live_.erase(handle) != 0;
  }
  /// Empty if the handle is live, otherwise the reason why it is not.
  std::string why_not(const void* handle) const {
    const std::lock_guard lock(mutex_);
    if (live_.contains(handle)) return "";
    if (!handle) return fmt::format("the {} is NULL", kind_);
    return fmt::format(
        "the {} {}", kind_,
        gone_.contains(handle) ? "was destroyed already" : "was never made by this device");
  }
  /// E.g. "2 events"; empty if none is left.
  std::string left() const {
    const std::lock_guard lock(mutex_);
    if (live_.empty()) return "";
    return fmt::format("{} {}{}", live_.size(), kind_, live_.size() == 1 ? "" : "s");
  }

 private:
  static constexpr std::size_t kMostGone = 4096;  // handles remembered for messages
  const char* const kind_;
  mutable std::mutex mutex_;
  std::unordered_set<const void*> live_, gone_;
};

}  // namespace plugrad::runtime
