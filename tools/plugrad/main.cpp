// The `plugrad` command: finds the subcommand, turns errors into messages and exit codes.
#include <fmt/format.h>

#include <cstdio>
#include <exception>

#include "command.h"
#include "plugrad/device.h"
#include "plugrad/error.h"

namespace plugrad::tools {
namespace {

constexpr Command kCommands[] = {
    {"bench", "measure speed, next to other libraries on this machine", run_bench},
    {"cache", "show or clear the cache of compiled kernels", run_cache},
    {"conformance", "judge a plugin by the conformance suite", run_conformance},
    {"conformance-model", nullptr, run_conformance_model},
    {"data", "find or fetch a data set", run_data},
    {"devices", "list plugins and devices, and why a plugin is not used", run_devices},
    {"explain", "show every stage from a tensor program to machine code", run_explain},
    {"bench-peer", nullptr, run_bench_peer},
    {"bench-steps", nullptr, run_bench_steps},
    {"first-kernel", nullptr, run_first_kernel},
    {"new-plugin", "make a project for a device of your own", run_new_plugin},
    {"train", "train a network", run_train},
    {"tune", "show, export or import what searches (BEAM) found", run_tune},
};

std::string overview() {
  std::string text = "usage: plugrad COMMAND [OPTION…]\n\n";
  for (const Command& command : kCommands)
    if (command.summary) text += fmt::format("  {:<13}{}\n", command.name, command.summary);
  return text +
         "\nplugrad COMMAND --help tells more. DEV=NAME chooses the device of any command.\n";
}

const Command* find_command(const std::string& name) {
  for (const Command& command : kCommands)
    if (name == command.name) return &command;
  return nullptr;
}

int run(const Arguments& arguments) {
  if (arguments.empty()) throw UsageError("a command is missing\n" + overview());
  if (arguments[0] == "--help" || arguments[0] == "-h" || arguments[0] == "help") {
    fmt::print("{}", overview());
    return kSuccess;
  }
  const Command* command = find_command(arguments[0]);
  if (!command)
    throw UsageError(fmt::format("there is no command {}\n{}", arguments[0], overview()));
  return command->run({arguments.begin() + 1, arguments.end()});
}

}  // namespace

Parsed parse(const Arguments& arguments, const std::string& usage,
             boost::program_options::options_description options, const char* words) {
  namespace po = boost::program_options;
  options.add_options()("help,h", "show this");
  po::options_description all = options;
  po::positional_options_description positional;
  if (*words) {
    all.add_options()(words, po::value<std::vector<std::string>>()->default_value({}, ""));
    positional.add(words, -1);
  }
  Parsed parsed;
  try {
    // Abbreviations would turn a new option into a breach of the command line's contract.
    int style = po::command_line_style::unix_style & ~po::command_line_style::allow_guessing;
    po::store(
        po::command_line_parser(arguments).options(all).positional(positional).style(style).run(),
        parsed.values);
    po::notify(parsed.values);
  } catch (const po::error& error) {
    throw UsageError(fmt::format("{}\nusage: {}", error.what(), usage));
  }
  if (parsed.has("help")) {
    fmt::print("usage: {}\n{}", usage, fmt::to_string((std::ostringstream() << options).str()));
    parsed.help = true;
  }
  return parsed;
}

void choose_device(const std::string& selection) {
  if (!selection.empty()) Device::set_default_device(selection);
}

void print_json(const nlohmann::ordered_json& document, bool indented) {
  fmt::print("{}\n", document.dump(indented ? 2 : -1));
}

}  // namespace plugrad::tools

int main(int argc, char** argv) {
  using namespace plugrad;
  try {
    return tools::run({argv + 1, argv + argc});
  } catch (const tools::UsageError& error) {
    fmt::print(stderr, "plugrad: {}\n", error.what());
    return tools::kBadUsage;
  } catch (const Error& error) {
    fmt::print(stderr, "plugrad: error ({}): {}\n", to_string(error.kind()), error.what());
    return tools::kFailure;
  } catch (const std::exception& error) {
    fmt::print(stderr, "plugrad: error: {}\n", error.what());
    return tools::kFailure;
  }
}
