// plugrad-conformance: started by `plugrad conformance`, and by itself for each model.
#include "command_line/run_program.h"
#include "judge.h"
#include "models.h"
#include "networks/stages.h"

int main(int argc, char** argv) {
  using namespace plugrad::tools;
  return run_companion(argc, argv,
                       {{"conformance", judge_plugin},
                        {"conformance-model", train_alone},
                        {"conformance-network", run_stage}});
}
