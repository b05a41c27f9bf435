// Trains models on a plugin's device through core and compares them with the reference evaluator:
// the tests "l2.models.*" of `plugrad conformance`. Not part of the suite's library, which does not
// depend on core.
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

/// One test per model; each trains in a separate process, so that a crash is a test result.
std::vector<conformance::ExtraTest> model_tests(const ModelTarget& target);

/// Trains the named model in this process. Throws std::invalid_argument for unknown names.
conformance::TestResult train_model(const std::string& name, const ModelTarget& target);

/// The same in a separate process, with these arguments; returns the exit code.
int train_alone(const Arguments& arguments);

/// The words and the options that name the target, for a child that reads them with read_target().
std::vector<std::string> arguments_of(std::vector<std::string> words, const ModelTarget& target);
ModelTarget read_target(const Parsed& parsed);

/// This environment without variables that influence device selection or code generation, and with
/// this folder of caches.
std::vector<std::string> clean_environment(const std::string& cache);

/// In a child of run_child: writes to kChildResult.
void write_to_parent(const std::string& text);

/// Opens the target's plugin and makes its device the default one. Returns the device's name.
std::string select_device(const ModelTarget& target);

/// Names of the models.
std::vector<std::string> model_names();

}  // namespace plugrad::tools
