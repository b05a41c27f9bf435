// plugrad-measure, the timing helper: a separate program, so that a search survives crashing
// kernels.
#include <csignal>

#include "tuning/helper/worker.h"

int main() {
  std::signal(SIGXFSZ, SIG_IGN);  // a file size limit must not kill the process
  return plugrad::tuning::serve_timing_requests();
}
