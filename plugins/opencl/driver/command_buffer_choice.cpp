// Selects the devices that replay graphs by command buffer. In its own file, so that a test can
// replace it.
#include "command_buffer.h"

namespace plugrad::opencl {

// Recording gains nothing on a CPU's driver: PoCL 3.1 queues recorded commands one by one, and adds
// bookkeeping. Replays of 5, 20, 50 and 200 launches took 33, 69, 101 and 370 us as lists, and 34,
// 71, 135 and 476 us recorded (2 cores, medians of 600, interleaved).
bool prefers_command_buffers(bool is_cpu) {
  return !is_cpu;
}

}  // namespace plugrad::opencl
