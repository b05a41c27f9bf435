// The helper process that runs kernels which nobody has run before: it may crash or hang in the
// place of the program.
#pragma once

#include "plugrad/export.h"

namespace plugrad::tuning {

/// Answers the requests of measure_messages.h on standard input, a socket, until its other end is
/// closed; its settings say which device. The process's exit code.
PLUGRAD_API int serve_timing_requests();

}  // namespace plugrad::tuning
