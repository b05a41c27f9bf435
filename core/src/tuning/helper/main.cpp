// plugrad-measure: a program of its own, so that a search survives the kernels that it tries.
#include <csignal>

#include "tuning/helper/worker.h"

int main() {
  std::signal(SIGXFSZ, SIG_IGN);  // the caches that it writes may be at their limit
  return plugrad::tuning::serve_timing_requests();
}
