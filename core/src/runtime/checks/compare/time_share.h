// Keeps the time of checks within a share of the program's time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/clock.h"

namespace plugrad::runtime {

/// The checks of one kernel.
struct CheckTimes {
  uint64_t checks = 0, launches = 0;
  uint32_t most_runs = 1;  // on the other device in one check
  double ns_per_line = 0;  // of a check, with all of its runs; 0: not known
};

/// What a check executes on the other device.
struct CheckWork {
  double lines = 0, bytes = 0;  // of one run
  uint32_t runs = 1;
};

class TimeShare {
 public:
  /// `percent` of the time since `now_ns`; 0: no limit.
  explicit TimeShare(double percent, uint64_t now_ns = monotonic_ns())
      : share_(percent / 100), start_ns_(now_ns) {}

  bool is_limited() const { return share_ > 0; }

  /// Nanoseconds that a check may take now; 0 or less: none. With a limit, no check takes longer
  /// than kLongestNs, so that a launch is not delayed by more.
  double available_ns(uint64_t now_ns = monotonic_ns()) const {
    if (!is_limited()) return 1e18;
    return std::min(kLongestNs, share_ * static_cast<double>(now_ns - start_ns_) - spent_ns_);
  }
  /// Whether it is the kernel's turn: the more often it was checked, the rarer.
  bool is_due(CheckTimes& kernel) const {
    return !is_limited() || ++kernel.launches % (1 + kernel.checks) == 0;
  }
  /// The expected time of a check, from those so far. The first check of a kernel may need all of
  /// its runs.
  double expected_ns(const CheckTimes& kernel, double lines, double bytes) const {
    const double each =
        kernel.ns_per_line > 0 ? kernel.ns_per_line : ns_per_line_ * kernel.most_runs;
    return lines * each + bytes * kNsPerByte;
  }
  void spent(CheckTimes& kernel, const CheckWork& work, uint64_t ns) {
    ++kernel.checks;
    spent_beside(static_cast<double>(ns));
    if (work.lines <= kLeastLines) return;
    const double of_lines =
        std::max(0.0, static_cast<double>(ns) - work.bytes * kNsPerByte) / work.lines;
    ns_per_line_ += (of_lines / work.runs - ns_per_line_) / 4;
    kernel.ns_per_line =
        kernel.ns_per_line > 0 ? (3 * kernel.ns_per_line + of_lines) / 4 : of_lines;
  }
  /// Time that checks cost outside of them: opening the other device, compiling for it.
  double spent_ns() const { return spent_ns_; }
  void spent_beside(double ns) { spent_ns_ += ns; }

 private:
  static constexpr double kLongestNs = 250e6;
  // Three copies at 3 GB/s. Lines: REFERENCE executes 25 million a second (first guess, then
  // measured, from launches of which the lines take most of the time).
  static constexpr double kNsPerByte = 1.0, kLeastLines = 10000;
  const double share_;
  const uint64_t start_ns_;
  double spent_ns_ = 0, ns_per_line_ = 40;
};

}  // namespace plugrad::runtime
