// How rows with peers are timed: warm, in turns with the peer, the best and the median of many
// rounds. Rows without peers are timed by Google Benchmark (bench/micro).
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "plugrad/tensor.h"

namespace plugrad::bench {

/// One round; returns the seconds that count, so that it can prepare and clean up outside of them.
using Round = std::function<double()>;

struct Timing {
  double best = 0, median = 0;  // seconds
};

struct Rounds {
  int warm_up = 3;
  int least = 7;
  double seconds = 1.0;  // keeps measuring at least for so long, all contenders together
};

/// Times the contenders in turns, so that a slow moment of the machine meets all of them.
std::vector<Timing> measure(const std::vector<Round>& contenders, const Rounds& rounds = {});

/// Seconds of one call.
double time_of(const std::function<void()>& call);

/// Times recording, planning (a cache hit when warm) and running what `make` returns. A value that
/// lived on would be found again instead of computed, so dead values are collected outside the
/// time.
Round realizing(std::function<std::vector<Tensor>()> make);

/// Times a replay of `make`, which is recorded before that, on these arguments.
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
