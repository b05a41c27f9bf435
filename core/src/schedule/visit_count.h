// Counts what the planner does, and lets a program interrupt it meanwhile.
#pragma once

#include <cstdint>

#include "base/binding.h"

namespace plugrad::schedule {

/// Node visits. Errors: what the interruption check (base/binding.h) throws.
class VisitCount {
 public:
  VisitCount& operator+=(uint64_t visits) {
    constexpr uint64_t kBetweenPolls = 1024;  // visits: less than a millisecond
    const uint64_t before = count_;
    count_ += visits;
    if (before / kBetweenPolls != count_ / kBetweenPolls) poll_interruption();
    return *this;
  }
  VisitCount& operator++() { return *this += 1; }
  operator uint64_t() const { return count_; }  // NOLINT: a number that polls

 private:
  uint64_t count_ = 0;
};

}  // namespace plugrad::schedule
