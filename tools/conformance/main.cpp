// plugrad-conformance: started by `plugrad conformance`, and by itself for each model.
#include "command_line/run_program.h"
#include "judge.h"
#include "models.h"
#include "networks/stages.h"

namespace plugrad::tools {
namespace {

int run(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "conformance-model")
    return train_alone({arguments.begin() + 1, arguments.end()});
  if (!arguments.empty() && arguments[0] == "conformance-network")
    return run_stage({arguments.begin() + 1, arguments.end()});
  return judge_plugin(arguments);
}

}  // namespace
}  // namespace plugrad::tools

int main(int argc, char** argv) {
  return plugrad::tools::run_program(argc, argv, plugrad::tools::run);
}
