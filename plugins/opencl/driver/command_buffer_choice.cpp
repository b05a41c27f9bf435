// Which devices replay graphs by command buffer: alone in its file, so that a test can put another
// answer in its place.
#include "command_buffer.h"

namespace plugrad::opencl {

// A CPU's driver has no submission to save: PoCL 3.1 queues recorded commands one by one as it does
// any others, and keeps books on the recording besides. Replays of 5, 20, 50 and 200 launches took
// 33, 69, 101 and 370 us as lists, 34, 71, 135 and 476 us recorded (2 cores, medians of 600 in
// turns).
bool prefers_command_buffers(bool is_cpu) {
  return !is_cpu;
}

}  // namespace plugrad::opencl
