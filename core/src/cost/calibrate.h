// Derives the figures of a Machine from the times of a few kernels. Independent of device and
// clock: the caller runs the kernels.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "cost/machine.h"

namespace plugrad::cost {

/// A kernel that determines one figure.
struct Probe {
  enum class Kind : uint8_t {
    Chain,         // dependent integer operations: `work` cycles
    MultiplyAdds,  // `work` of them in many independent sums
    Latency,       // `work` of them in one sum
    Loads,         // `work` vectors in `bytes` bytes, read repeatedly by each thread
    Stores,        // the same, written
    Wake           // `work` launches of a short kernel
  };
  Kind kind;
  double bytes = 0;  // of one thread
  bool all = false;  // by all threads at once
};

/// A time, and the work that each thread did in it. Values that are not positive and finite mean
/// failure.
struct Sample {
  double seconds = 0, work = 0;
};
using Measure = std::function<Sample(const Probe&)>;

/// The figures of two consecutive runs that agree within 10%; nothing, and `problem`, if no runs
/// agree before `seconds_left` is 0 or the figures are impossible.
std::optional<Machine> calibrate(const Machine& table, const Measure& measure,
                                 const std::function<double()>& seconds_left, std::string& problem);

}  // namespace plugrad::cost
