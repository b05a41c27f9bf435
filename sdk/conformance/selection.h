// Selects the tests of a run.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

// Matches an id against globs: `*` is any text, `?` one character, commas separate alternatives. A
// glob also matches ids below it: "l1.memory" matches "l1.memory.alignment".
bool matches(std::string_view globs, std::string_view id);

// True if levels (empty: all, but perf only in a full run or with a filter) and filter (empty: all)
// select the test.
bool selects(std::span<const Level> levels, std::string_view filter, bool full, Level level,
             std::string_view id);

}  // namespace plugrad::conformance
