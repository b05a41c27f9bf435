// plugrad-bench: started by `plugrad bench`, and by itself for measurements in a fresh process.
#include <fmt/format.h>
#include <signal.h>
#include <sys/prctl.h>

#include "bench.h"
#include "bench/peers/library_peer.h"
#include "bench/rows/cold.h"
#include "bench/rows/first_steps.h"
#include "command_line/run_program.h"

namespace plugrad::tools {
namespace {

// A peer measured alternately with the rows.
int run_peer(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad-bench bench-peer NAME");
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // a stopped process would outlive its parent
  return bench::run_library_peer(arguments[0]);
}

// The first steps of a training run, or the first call of a program.
int run_steps(const Arguments& arguments) {
  if (arguments.empty() || arguments.size() > 2)
    throw UsageError("usage: plugrad-bench bench-steps DEVICE [PROGRAM]");
  const auto measured = arguments.size() == 1 ? bench::run_first_steps(arguments[0])
                                              : bench::run_cold_call(arguments[0], arguments[1]);
  fmt::print("{}\n", measured.dump());
  return kSuccess;
}

}  // namespace
}  // namespace plugrad::tools

int main(int argc, char** argv) {
  using namespace plugrad::tools;
  return run_companion(
      argc, argv, {{"bench", measure_rows}, {"bench-peer", run_peer}, {"bench-steps", run_steps}});
}
