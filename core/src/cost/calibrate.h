// From times of a few kernels to the figures of a Machine. It sees neither device nor clock: who
// calls it runs the kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cost/machine.h"

namespace plugrad::cost {

/// A kernel that tells one figure.
struct Probe {
  enum class Kind : uint8_t {
    Chain,         // whole numbers of which each needs the one before: `work` cycles
    MultiplyAdds,  // `work` of them in many sums side by side
    Latency,       // `work` of them in one sum
    Loads,         // `work` vectors of `bytes` bytes, again and again, by each thread
    Stores,        // the same, written
    Wake           // `work` launches of a kernel of little work
  };
  Kind kind;
  double bytes = 0;  // of one thread
  bool all = false;  // by all threads at once
};

/// A time, and the work that took so long: of each thread. Not positive, or not finite: it failed.
struct Sample {
  double seconds = 0, work = 0;
};
using Measure = std::function<Sample(const Probe&)>;

/// The figures that two runs agree about within 10%, one after the other; nothing, and why, where
/// none do before `seconds_left` is 0 or what they say cannot be.
std::optional<Machine> calibrate(const Machine& table, const Measure& measure,
                                 const std::function<double()>& seconds_left, std::string& problem);

}  // namespace plugrad::cost
