// The file that PLUGRAD_TRACE names: what every stage and rewrite did, and when. One JSON object a
// line after an opening "[", each ending in ",": Chrome's trace format, so that its viewers open it
// as it is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <variant>

#include "plugrad/export.h"

namespace plugrad {

/// A named fact about an event.
struct TraceArg {
  std::string_view key;
  std::variant<std::int64_t, double, std::string_view> value;
};

/// Whether anything is recorded; ask before preparing arguments.
PLUGRAD_API bool tracing();

/// Something that took from `start_ns` to now (monotonic_ns): a stage, a compilation, a launch.
void trace_span(std::string_view category, std::string_view name, std::uint64_t start_ns,
                std::initializer_list<TraceArg> args = {});

/// Something that happened now: a rewrite, with "stage", "rule", "from" and "to".
void trace_instant(std::string_view category, std::string_view name,
                   std::initializer_list<TraceArg> args = {});

/// Puts what was recorded so far on disk; the end of the process does it too.
PLUGRAD_API void flush_trace();

}  // namespace plugrad
