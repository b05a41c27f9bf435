// The names of the commands, for programs that do not have their table.
#pragma once

namespace plugrad::tools {

/// In the order of the overview.
inline constexpr const char* kCommandNames[] = {
    "bench",   "bisect",  "cache",   "calibrate", "completion", "conformance", "data",
    "devices", "explain", "inspect", "man",       "new-plugin", "plan-scale",  "profile",
    "replay",  "run",     "train",   "tune",      "view"};

}  // namespace plugrad::tools
