// What `plugrad bench` does, as a program of its own: plugrad-bench.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Measures what the arguments of `plugrad bench` choose; gives the exit code.
int measure_rows(const Arguments& arguments);

}  // namespace plugrad::tools
