// Writes the file of PLUGRAD_TRACE: the time and effect of every stage and rewrite. One JSON object
// a line after an opening "[", each followed by ",": Chrome's trace format, which its viewers open
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

/// Whether events are recorded; check before preparing arguments.
PLUGRAD_API bool tracing();

/// Records an event from `start_ns` (monotonic_ns) to now: a stage, a compilation, a launch.
void trace_span(std::string_view category, std::string_view name, std::uint64_t start_ns,
                std::initializer_list<TraceArg> args = {});

/// Records an event at this moment: a rewrite, with "stage", "rule", "from" and "to".
void trace_instant(std::string_view category, std::string_view name,
                   std::initializer_list<TraceArg> args = {});

/// Flushes all recorded events to disk; also done at exit.
PLUGRAD_API void flush_trace();

}  // namespace plugrad
