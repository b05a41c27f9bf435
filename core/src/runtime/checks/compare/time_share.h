// Keeps the time of checks within a share of the program's time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace plugrad::runtime {

/// The checks of one kernel.
struct CheckTimes {
  uint64_t checks = 0, launches = 0;
};

class TimeShare {
 public:
  /// `percent` 0: no limit.
  explicit TimeShare(double percent) : share_(percent / 100), start_(monotonic_ns()) {}

  bool is_limited() const { return share_ > 0; }

  /// Nanoseconds that a check may take now; 0 or less: none. With a limit, no check takes longer
  /// than kLongestNs, so that a launch is not delayed by more.
  double available_ns() const {
    if (!is_limited()) return 1e18;
    return std::min(kLongestNs, share_ * static_cast<double>(monotonic_ns() - start_) - spent_);
  }
  /// Whether it is the kernel's turn: the more often it was checked, the rarer.
  bool is_due(CheckTimes& kernel) const {
    return !is_limited() || ++kernel.launches % (1 + kernel.checks) == 0;
  }
  /// The expected time of a check by size; from the checks so far.
  double expected_ns(double lines, double bytes) const {
    return lines * ns_per_line_ + bytes * kNsPerByte;
  }
  void spent(CheckTimes& kernel, double lines, double bytes, uint64_t ns) {
    ++kernel.checks;
    const auto taken = static_cast<double>(ns);
    spent_ += taken;
    const double of_lines = std::max(0.0, taken - bytes * kNsPerByte);
    if (lines > kLeastLines) ns_per_line_ += (of_lines / lines - ns_per_line_) / 4;
  }

 private:
  static constexpr double kLongestNs = 250e6;
  // Three copies at 3 GB/s. Lines: REFERENCE executes 25 million a second (first guess, then
  // measured, from launches of which the lines take most of the time).
  static constexpr double kNsPerByte = 1.0, kLeastLines = 10000;
  const double share_;
  const uint64_t start_;
  double spent_ = 0, ns_per_line_ = 40;
};

}  // namespace plugrad::runtime
