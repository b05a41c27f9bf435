// `plugrad bench` as a separate program: plugrad-bench.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Measures the rows that the arguments of `plugrad bench` select; returns the exit code.
int measure_rows(const Arguments& arguments);

}  // namespace plugrad::tools
