// The helper process that runs untested kernels: they may crash or hang it instead of the program.
#pragma once

#include "plugrad/export.h"

namespace plugrad::tuning {

/// Answers the requests of messages.h from standard input, a socket, until the other end closes it;
/// the settings select the device. Returns the exit code.
PLUGRAD_API int serve_timing_requests();

}  // namespace plugrad::tuning
