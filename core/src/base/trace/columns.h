// Turns events into lines of columns.
#pragma once

#include <string>
#include <vector>

#include "base/trace/trace.h"

namespace plugrad::trace {

/// Appends one line with all events, which are of one kind. Times become relative to `epoch_ns`.
void append_columns(std::string& out, const std::vector<Launch>& events, std::uint64_t epoch_ns);
void append_columns(std::string& out, const std::vector<Copy>& events, std::uint64_t epoch_ns);
void append_columns(std::string& out, const std::vector<Wait>& events, std::uint64_t epoch_ns);
void append_columns(std::string& out, const std::vector<Collective>& events,
                    std::uint64_t epoch_ns);
void append_columns(std::string& out, const std::vector<Span>& events, std::uint64_t epoch_ns);
void append_columns(std::string& out, const std::vector<Memory>& events, std::uint64_t epoch_ns);

}  // namespace plugrad::trace
