// Runs a collective between processes through the backend of the program (distributed/backend.h).
#pragma once

#include "runtime/device/device.h"
#include "schedule/schedule.h"

namespace plugrad::engine {

/// Waits for the source and for the other processes. Errors: as distributed::Backend::wait.
void run_collective(const schedule::Step& step, DType dtype, runtime::Buffer& destination,
                    const runtime::Buffer& source);

}  // namespace plugrad::engine
