// Runs tests on several threads and delivers their results in order on the calling thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

// Runs the test at `number`; nullopt if it was interrupted.
using RunOne = std::function<std::optional<TestResult>(size_t number)>;

// Runs tests 0 to count-1 on `lanes` threads, each with its own function from `make_lane`, and
// passes the results to `take` in order. Stops if `take` returns false; later results are dropped.
// A single lane runs on the calling thread.
void run_side_by_side(size_t count, uint32_t lanes, const std::function<RunOne()>& make_lane,
                      const std::function<bool(TestResult)>& take);

}  // namespace plugrad::conformance
