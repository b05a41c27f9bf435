// Keeps the time of checks within a share of the program's time.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace plugrad::runtime {

/// The checks of one kernel.
struct CheckTimes {
  uint64_t checks = 0, last_ns = 0;
};

class TimeShare {
 public:
  /// `percent` 0: no limit.
  explicit TimeShare(double percent) : share_(percent / 100), start_(monotonic_ns()) {}

  bool has_time_for(const CheckTimes& kernel) const {
    if (share_ == 0) return true;
    const auto elapsed = static_cast<double>(monotonic_ns() - start_);
    return spent_ + static_cast<double>(kernel.last_ns) <= share_ * elapsed;
  }
  void spent(CheckTimes& kernel, uint64_t ns) {
    ++kernel.checks;
    kernel.last_ns = ns;
    spent_ += static_cast<double>(ns);
  }

 private:
  const double share_;
  const uint64_t start_;
  double spent_ = 0;
};

}  // namespace plugrad::runtime
