// The `plugrad` command: dispatches to subcommands.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "command.h"
#include "command_line/names.h"
#include "command_line/run_program.h"
#include "command_line/version.h"
#include "plugrad/tensor.h"

namespace plugrad::tools {
namespace {

constexpr Command kCommands[] = {
    {"bench", "measure speed, next to other libraries on this machine", bench_syntax, nullptr,
     "plugrad-bench"},
    {"bisect", "find the rule, stage or schedule step at fault", bisect_syntax, nullptr,
     "plugrad-explain"},
    {"cache", "show or clear the cache of compiled kernels", cache_syntax, run_cache},
    {"calibrate", "measure what this processor can do, for the choice of schedules",
     calibrate_syntax, run_calibrate},
    {"completion", "print what makes a shell complete this command", completion_syntax,
     run_completion},
    {"conformance", "judge a plugin by the conformance suite", conformance_syntax, nullptr,
     "plugrad-conformance"},
    {"data", "find or fetch a data set", data_syntax, run_data},
    {"devices", "list plugins and devices, and why a plugin is not used", devices_syntax,
     run_devices},
    {"explain", "show every stage from a tensor program to machine code", explain_syntax, nullptr,
     "plugrad-explain"},
    {"inspect", "show what an ONNX model holds", inspect_syntax, nullptr, "plugrad-models"},
    {"man", "print the manual page", man_syntax, run_man},
    {"new-plugin", "make a project for a device of your own", new_plugin_syntax, run_new_plugin},
    {"plan-scale", "estimate a traced step of training on many devices", plan_scale_syntax, nullptr,
     "plugrad-explain"},
    {"profile", "run a program, or read its trace, and show where its time went", profile_syntax,
     nullptr, "plugrad-explain"},
    {"replay", "repeat the recording of a program on any device", replay_syntax, nullptr,
     "plugrad-explain"},
    {"run", "run a model from an ONNX file", run_syntax, nullptr, "plugrad-models"},
    {"train", "train a network", train_syntax, run_train},
    {"tune", "show, export or import what searches (BEAM) found", tune_syntax, run_tune},
    {"view", "show a trace in a browser, or convert it for other viewers", view_syntax, nullptr,
     "plugrad-explain"},
};
static_assert(std::ranges::equal(
    kCommands, kCommandNames, {},
    [](const Command& command) { return std::string_view(command.name); },
    [](const char* name) { return std::string_view(name); }));

std::string overview() {
  std::string text = "usage: plugrad COMMAND [OPTION…]\n\n";
  for (const Command& command : kCommands)
    text += fmt::format("  {:<13}{}\n", command.name, command.summary);
  return text +
         "\nplugrad help COMMAND tells more, plugrad --version [--json] which build this is. "
         "DEV=NAME chooses the device of any command.\n";
}

const Command& find_command(const std::string& name) {
  Arguments known = {"help"};
  for (const Command& command : kCommands) {
    if (name == command.name) return command;
    known.emplace_back(command.name);
  }
  throw UsageError(
      fmt::format("there is no command {}{}\n{}", name, did_you_mean(name, known), overview()));
}

int run_command(Command command, const Arguments& arguments) {
  if (command.syntax == run_syntax && std::ranges::count(arguments, "--profile") > 0)
    command.companion = "plugrad-explain";  // it runs `plugrad run` without the option
  return command.run ? command.run(arguments) : start_companion(command, arguments);
}

int help(const Arguments& names) {
  if (names.empty()) return fmt::print("{}", overview()), kSuccess;
  if (names.size() > 1) throw UsageError("help explains one command\nusage: plugrad help COMMAND");
  return run_command(find_command(names[0]), {"--help"});
}

int run(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("a command is missing\n" + overview());
  const std::string& name = arguments[0];
  const Arguments rest = {arguments.begin() + 1, arguments.end()};
  if (name == "--help" || name == "-h" || name == "help") return help(rest);
  if (name == "--version" || name == "-V") return print_version(rest);
  if (name == "first-kernel") return run_first_kernel(rest);
  return run_command(find_command(name), rest);
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
