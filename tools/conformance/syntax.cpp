// The syntax of `plugrad conformance`: the command prints help and completions from it, and the
// program parses with it.
#include "command.h"

namespace plugrad::tools {
namespace {

constexpr const char* kUsage =
    "plugrad conformance (--plugin PATH | --device D) [--level L] [--quick|--full] [--filter G]\n"
    "                    [--seed S] [--jobs N] [--report DIR] [--json]\n"
    "       plugrad conformance (--plugin PATH | --device D) --replay TOKEN\n"
    "       plugrad conformance (--plugin PATH | --device D) --models DIR|FILE|PACKAGE [--expected "
    "D]\n"
    "                    [--size NAME=N]… [--input NAME=NUMBER]… [--filter G] [--seed S] [--report "
    "DIR]\n"
    "                    [--json]\n"
    "       plugrad conformance --list [--full]\n"
    "       plugrad conformance --verify-report FILE\n"
    "       plugrad conformance --suite-version";

boost::program_options::options_description describe_options() {
  namespace po = boost::program_options;
  const auto text = [] { return po::value<std::string>()->default_value("", ""); };
  const auto texts = [] {
    return po::value<std::vector<std::string>>()->composing()->default_value({}, "");
  };
  po::options_description options("Options");
  options.add_options()("plugin", po::value<std::string>(), "the library to judge");
  options.add_options()("device", po::value<std::string>(),
                        "the device whose plugin to judge: CPU, CPU:1");
  options.add_options()("index", po::value<std::string>()->default_value("0"),
                        "with --plugin: which of its devices");
  options.add_options()(
      "level", texts(),
      "a list of L0, L1, L2, L3, perf; all where none is named, perf with --full");
  options.add_options()("quick", "the short selection (the default)");
  options.add_options()("full", "every test");
  options.add_options()("filter", text(), "globs over test ids, separated by commas: l1.memory.*");
  options.add_options()("seed", po::value<std::string>()->default_value("0"),
                        "of everything random");
  options.add_options()("report", text(), "folder for conformance.json, .xml and .html");
  options.add_options()("json", "the report as one JSON document");
  options.add_options()("replay", text(),
                        "runs exactly the test of this token, or the launch in this recording");
  options.add_options()("models", po::value<std::string>(),
                        "judges the kernels of networks: ONNX files below a folder, one file, or "
                        "those of the Python package NAME or NAME==VERSION");
  options.add_options()("expected", text(),
                        "with --models: the device that computes the expected values, REFERENCE or "
                        "CPU; default: by the kernel's work");
  options.add_options()(
      "size", texts(),
      "with --models: NAME=N or INPUT.AXIS=N, a size that models leave open; 1 for "
      "the first axis and 64 for the others without it");
  options.add_options()("input", texts(),
                        "with --models: NAME=NUMBER, the elements of an input; random without it");
  options.add_options()("waivers", text(), "JSON file of failures that are known");
  options.add_options()("option", texts(), "key=value for the device; may be repeated");
  options.add_options()("plugin-option", texts(),
                        "key=value for the plugin's entry; may be repeated");
  options.add_options()("jobs", text(), "tests that run side by side; one a core unless given");
  options.add_options()("time-limit-factor", po::value<double>()->default_value(1, "1"),
                        "stretches the time limits, for slow devices");
  options.add_options()("verify-report", po::value<std::string>(),
                        "says whether the suite wrote this report");
  options.add_options()("suite-version", "the suite's version, as reports name it");
  options.add_options()("list", "the tests");
  return options;
}

}  // namespace

Syntax conformance_syntax() {
  return {.usage = kUsage,
          .options = describe_options(),
          .choices = {{"level", {"L0", "L1", "L2", "L3", "perf"}}},
          .paths = {"plugin", "report", "waivers", "verify-report", "models"}};
}

}  // namespace plugrad::tools
