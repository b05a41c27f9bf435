// Models trained on a plugin's device through core, compared with the evaluator: the tests
// "l2.models.*" of `plugrad conformance`, which the suite's library cannot hold because it knows no
// core.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "command.h"
#include "plugrad/sdk/conformance.h"

namespace plugrad::tools {

struct ModelTarget {
  std::string plugin_path;
  uint32_t device_index = 0;
  std::map<std::string, std::string> device_options;
  double time_limit_factor = 1;
};

/// One test a model; each trains in a process of its own, so that a crash is a result.
std::vector<conformance::ExtraTest> model_tests(const ModelTarget& target);

/// Trains the model of that name in this process. Throws std::invalid_argument for no such model.
conformance::TestResult train_model(const std::string& name, const ModelTarget& target);

/// The same in a process of its own, for these arguments; gives the exit code.
int train_alone(const Arguments& arguments);

/// Names of the models.
std::vector<std::string> model_names();

}  // namespace plugrad::tools
