// plugrad-models: started by `plugrad run` and `plugrad inspect`.
#include "command_line/run_program.h"

int main(int argc, char** argv) {
  using namespace plugrad::tools;
  return run_companion(argc, argv, {{"run", run_run}, {"inspect", run_inspect}});
}
