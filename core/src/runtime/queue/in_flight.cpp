#include "runtime/queue/in_flight.h"

#include <fmt/format.h>

#include <algorithm>

namespace plugrad::runtime {

void LaunchesInFlight::launched(std::string_view kernel, bool is_first) {
  const std::lock_guard lock(mutex_);
  last_[launched_++ % kRemembered].assign(kernel);
  if (!is_first) return;
  ++first_launches_;
  last_first_ = launched_;
}

std::uint64_t LaunchesInFlight::count() const {
  const std::lock_guard lock(mutex_);
  return launched_;
}

void LaunchesInFlight::waited(std::uint64_t count) {
  const std::lock_guard lock(mutex_);
  waited_ = std::max(waited_, count);
  if (waited_ >= last_first_) first_launches_ = 0;
}

std::uint64_t LaunchesInFlight::first_launches() const {
  const std::lock_guard lock(mutex_);
  return first_launches_;
}

std::string LaunchesInFlight::names() const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t open = launched_ - waited_, known = std::min(open, kRemembered);
  std::string out;
  for (std::uint64_t i = launched_ - known; i < launched_; ++i)
    out += (out.empty() ? "" : ", ") + last_[i % kRemembered];
  if (open > known) out += fmt::format(" and {} before them", open - known);
  return out;
}

}  // namespace plugrad::runtime
