// VIZ=1: shows the trace when the program ends.
#pragma once

#include <string>

namespace plugrad::trace {

/// A new file in the directory for temporary files.
std::string path_for_viewer();

/// Runs `plugrad view` on the trace, and waits for it if the program has a terminal; else prints
/// the command.
void open_viewer(const std::string& trace_path) noexcept;

}  // namespace plugrad::trace
