// Ends the recordings of a process that exits without plugrad::shutdown().
#pragma once

#include <memory>

#include "runtime/checks/record/recording.h"

namespace plugrad::runtime {

void finish_at_exit(std::shared_ptr<RecordingWriter> recording);

}  // namespace plugrad::runtime
