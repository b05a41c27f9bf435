// The `plugrad` command: dispatches to subcommands.
#include <fmt/format.h>

#include "command.h"
#include "command_line/run_program.h"
#include "command_line/version.h"
#include "plugrad/tensor.h"

namespace plugrad::tools {
namespace {

constexpr Command kCommands[] = {
    {"bench", "measure speed, next to other libraries on this machine", run_bench, bench_syntax},
    {"bisect", "find the rule, stage or schedule step at fault", run_bisect, bisect_syntax},
    {"cache", "show or clear the cache of compiled kernels", run_cache, cache_syntax},
    {"calibrate", "measure what this processor can do, for the choice of schedules", run_calibrate,
     calibrate_syntax},
    {"completion", "print what makes a shell complete this command", run_completion,
     completion_syntax},
    {"conformance", "judge a plugin by the conformance suite", run_conformance, conformance_syntax},
    {"data", "find or fetch a data set", run_data, data_syntax},
    {"devices", "list plugins and devices, and why a plugin is not used", run_devices,
     devices_syntax},
    {"explain", "show every stage from a tensor program to machine code", run_explain,
     explain_syntax},
    {"first-kernel", nullptr, run_first_kernel, nullptr},
    {"inspect", "show what an ONNX model holds", run_inspect, inspect_syntax},
    {"man", "print the manual page", run_man, man_syntax},
    {"new-plugin", "make a project for a device of your own", run_new_plugin, new_plugin_syntax},
    {"plan-scale", "estimate a traced step of training on many devices", run_plan_scale,
     plan_scale_syntax},
    {"profile", "run a program, or read its trace, and show where its time went", run_profile,
     profile_syntax},
    {"replay", "repeat the recording of a program on any device", run_replay, replay_syntax},
    {"run", "run a model from an ONNX file", run_run, run_syntax},
    {"train", "train a network", run_train, train_syntax},
    {"tune", "show, export or import what searches (BEAM) found", run_tune, tune_syntax},
    {"view", "show a trace in a browser, or convert it for other viewers", run_view, view_syntax},
};

std::string overview() {
  std::string text = "usage: plugrad COMMAND [OPTION…]\n\n";
  for (const Command& command : kCommands)
    if (command.summary) text += fmt::format("  {:<13}{}\n", command.name, command.summary);
  return text +
         "\nplugrad help COMMAND tells more, plugrad --version [--json] which build this is. "
         "DEV=NAME chooses the device of any command.\n";
}

const Command& find_command(const std::string& name) {
  Arguments known = {"help"};
  for (const Command& command : kCommands) {
    if (name == command.name) return command;
    if (command.summary) known.emplace_back(command.name);
  }
  throw UsageError(
      fmt::format("there is no command {}{}\n{}", name, did_you_mean(name, known), overview()));
}

int help(const Arguments& names) {
  if (names.empty()) return fmt::print("{}", overview()), kSuccess;
  if (names.size() > 1) throw UsageError("help explains one command\nusage: plugrad help COMMAND");
  const Command& command = find_command(names[0]);
  if (!command.summary) throw UsageError(fmt::format("{} is not for users", names[0]));
  return command.run({"--help"});
}

int run(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("a command is missing\n" + overview());
  const std::string& name = arguments[0];
  const Arguments rest = {arguments.begin() + 1, arguments.end()};
  if (name == "--help" || name == "-h" || name == "help") return help(rest);
  if (name == "--version" || name == "-V") return print_version(rest);
  return find_command(name).run(rest);
}

}  // namespace

int run_first_kernel(const Arguments& arguments) {
  if (arguments.size() != 1) throw UsageError("usage: plugrad first-kernel DEVICE");
  const Tensor x = Tensor::from<float>({1, 2, 3}, arguments[0]);
  return (x * 2 + 1).to_vector<float>() == std::vector<float>{3, 5, 7} ? kSuccess : kFailure;
}

std::span<const Command> commands() {
  return kCommands;
}

}  // namespace plugrad::tools

int main(int argc, char** argv) {
  return plugrad::tools::run_program(argc, argv, plugrad::tools::run);
}
