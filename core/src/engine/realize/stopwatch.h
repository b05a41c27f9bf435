// Adds the time that passes to a counter.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace plugrad::engine {

/// Adds the elapsed time on destruction.
class Stopwatch {
 public:
  explicit Stopwatch(uint64_t& total_ns) : total_ns_(total_ns), begin_ns_(monotonic_ns()) {}
  ~Stopwatch() { total_ns_ += monotonic_ns() - begin_ns_; }

 private:
  uint64_t& total_ns_;
  const uint64_t begin_ns_;
};

}  // namespace plugrad::engine
