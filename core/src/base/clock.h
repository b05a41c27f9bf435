// A clock for measurements.
#pragma once

#include <chrono>
#include <cstdint>

namespace plugrad {

inline constexpr std::uint64_t kSecondNs = 1'000'000'000;

/// Nanoseconds of a clock that never goes back; only differences are meaningful.
inline std::uint64_t monotonic_ns() {
  auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

}  // namespace plugrad
