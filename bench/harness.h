// Timing helper for rows with peers: after a warm-up, alternates with the peer and reports the best
// and the median of many rounds. Rows without peers use Google Benchmark (bench/micro).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::bench {

/// One round; returns the measured seconds, which exclude preparation and clean-up.
using Round = std::function<double()>;

struct Timing {
  double best = 0, median = 0;  // seconds
};

struct Rounds {
  int warm_up = 3;
  int least = 7;
  double seconds = 1.0;  // minimum measuring time for all contenders together
};

/// Times the contenders alternately, so that a slow phase of the machine affects all of them.
std::vector<Timing> measure(const std::vector<Round>& contenders, const Rounds& rounds = {});

/// Seconds of one call.
double time_of(const std::function<void()>& call);

/// Processor seconds of one call, of all threads of this process.
double processor_time_of(const std::function<void()>& call);

/// Times recording, planning (a cache hit when warm) and execution of the tensors that `make`
/// returns. A surviving value would be reused instead of computed, so that dead values are
/// collected outside the measured time.
Round realizing(std::function<std::vector<Tensor>()> make);

/// Times replays of `make` on these arguments; the recording is not measured.
Round replaying(std::function<std::vector<Tensor>(const std::vector<Tensor>&)> make,
                std::vector<Tensor> arguments);

/// Uses `count` threads until the end of the scope.
class ThreadScope {
 public:
  explicit ThreadScope(int count);
  ~ThreadScope();
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  int outer_;
};

}  // namespace plugrad::bench
