// Tests on several threads; their results in order, on the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

// Runs the test of that number; nothing where it was interrupted.
using RunOne = std::function<std::optional<TestResult>(size_t number)>;

// Has the tests 0 to count-1 run by `lanes` threads, each by what `make_lane` gives it there, and
// hands their results to `take` in the order of the numbers. Ends early where `take` says false;
// what ran behind that result is dropped. A single lane is the calling thread.
void run_side_by_side(size_t count, uint32_t lanes, const std::function<RunOne()>& make_lane,
                      const std::function<bool(TestResult)>& take);

}  // namespace plugrad::conformance
