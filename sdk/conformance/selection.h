// Which tests a run takes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "plugrad/sdk/conformance.h"

namespace plugrad::conformance {

// Whether the id fits the glob: `*` stands for any text, `?` for one character, commas separate
// globs of which one is enough. A glob also takes what lies below it: "l1.memory" takes
// "l1.memory.alignment".
bool matches(std::string_view globs, std::string_view id);

// Whether levels (empty: all, but perf only in a full run or where there is a filter) and filter
// (empty: all) take the test.
bool selects(std::span<const Level> levels, std::string_view filter, bool full, Level level,
             std::string_view id);

}  // namespace plugrad::conformance
