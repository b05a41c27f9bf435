// plugrad-explain: started by `plugrad explain` and the other commands that show or repeat what a
// program did.
#include "command_line/run_program.h"

int main(int argc, char** argv) {
  using namespace plugrad::tools;
  return run_companion(argc, argv,
                       {{"explain", run_explain},
                        {"bisect", run_bisect},
                        {"plan-scale", run_plan_scale},
                        {"profile", run_profile},
                        {"replay", run_replay},
                        {"run", run_run_with_profile},
                        {"view", run_view}});
}
