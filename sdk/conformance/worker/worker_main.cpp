// plugrad-conformance-worker: runs a plugin's tests, or its kernels, for the process that started
// it. Channel and crash pipe are inherited.
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>

#include "conformance/levels/loading/fresh_process.h"
#include "conformance/worker/crash_report.h"
#include "conformance/worker/serve.h"

int main(int argc, char** argv) {
  using namespace plugrad::conformance;
  constexpr int kChannelFile = 3, kCrashPipe = 4;
  if (argc > 1 && argv[1] == kFreshFlag) return run_fresh_check(argc, argv);
  if (argc != 2) {
    std::fprintf(stderr, "plugrad-conformance-worker is started by plugrad conformance\n");
    return 2;
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atoi(argv[1])) return 1;  // the parent ended before prctl
  try {
    report_crashes_to(kCrashPipe);
    Channel channel(kChannelFile);
    serve(channel);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plugrad-conformance-worker: %s\n", error.what());
    return 1;
  }
}
