// Writes a trace in the formats of other viewers.
#pragma once

#include <string>

#include "trace/trace.h"

namespace plugrad::tools::trace {

/// Chrome's trace event format (JSON): Perfetto, chrome://tracing.
std::string to_chrome(const Trace& trace);

/// Perfetto's protobuf format. Source: perfetto's protos/perfetto/trace/*.proto.
std::string to_perfetto(const Trace& trace);

/// speedscope's file format (JSON), one profile a lane. Source: its file-format-schema.json.
std::string to_speedscope(const Trace& trace);

}  // namespace plugrad::tools::trace
