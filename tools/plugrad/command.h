// A subcommand of `plugrad`: one file each, listed in main.cpp, or in the main.cpp of a companion.
#pragma once

#include <boost/program_options.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

namespace plugrad::tools {

using Arguments = std::vector<std::string>;

/// Exit codes of the command line's contract.
enum ExitCode : int { kSuccess = 0, kFailure = 1, kBadUsage = 2 };

/// Invalid arguments; main prints the message and exits with kBadUsage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Syntax of a subcommand's line: used by parse(), help, completion and the manual.
struct Syntax {
  std::string usage;  ///< its forms, one per line
  boost::program_options::options_description options{"Options"};
  std::string words = {};                         ///< name of the positional arguments; empty: none
  std::map<std::string, Arguments> choices = {};  ///< values of an option or of `words`
  std::set<std::string> paths = {};               ///< options (and `words`) whose values are paths
};

struct Command {
  const char* name;
  const char* summary;
  Syntax (*syntax)();
  int (*run)(const Arguments& arguments);  ///< null: the companion runs it
  const char* companion = nullptr;         ///< a program beside this one
};

/// In the order of the overview.
std::span<const Command> commands();

Syntax bench_syntax();
int run_bisect(const Arguments& arguments);
Syntax bisect_syntax();
int run_cache(const Arguments& arguments);
Syntax cache_syntax();
int run_calibrate(const Arguments& arguments);
Syntax calibrate_syntax();
int run_completion(const Arguments& arguments);
Syntax completion_syntax();
Syntax conformance_syntax();
int run_data(const Arguments& arguments);
Syntax data_syntax();
int run_devices(const Arguments& arguments);
Syntax devices_syntax();
int run_explain(const Arguments& arguments);
Syntax explain_syntax();
int run_inspect(const Arguments& arguments);
Syntax inspect_syntax();
int run_man(const Arguments& arguments);
Syntax man_syntax();
int run_new_plugin(const Arguments& arguments);
Syntax new_plugin_syntax();
int run_plan_scale(const Arguments& arguments);
Syntax plan_scale_syntax();
int run_profile(const Arguments& arguments);
Syntax profile_syntax();
int run_replay(const Arguments& arguments);
Syntax replay_syntax();
int run_run(const Arguments& arguments);
/// `plugrad run … --profile`, which is a profile of `plugrad run …`.
int run_run_with_profile(const Arguments& arguments);
Syntax run_syntax();
int run_train(const Arguments& arguments);
Syntax train_syntax();
int run_tune(const Arguments& arguments);
Syntax tune_syntax();
int run_view(const Arguments& arguments);
Syntax view_syntax();
/// Runs one kernel in a fresh process; `plugrad bench` measures its time.
int run_first_kernel(const Arguments& arguments);
/// Becomes the command's companion, with the command's name before the arguments. Errors: User, if
/// it is missing.
int start_companion(const Command& command, const Arguments& arguments);

/// Options and positional words of one subcommand, parsed with Boost.Program_options.
struct Parsed {
  boost::program_options::variables_map values;
  bool help = false;

  bool has(const char* name) const { return values.count(name) != 0; }
  template <class T>
  T get(const char* name) const {
    return values[name].as<T>();
  }
};

/// The options including --help.
boost::program_options::options_description all_options(const Syntax& syntax);

/// Prints usage and options for --help. Errors: UsageError, with a suggestion.
Parsed parse(const Arguments& arguments, const Syntax& syntax);

/// "; did you mean NAME?", or empty if no name is similar.
std::string did_you_mean(const std::string& given, const Arguments& known);

/// Errors: UsageError, with a suggestion: "there is no model vst; did you mean vast?".
void require_choice(const char* kind, const std::string& given, const Arguments& known,
                    const std::string& usage);

/// The pairs of --option KEY=VALUE. Errors: UsageError.
std::map<std::string, std::string> parse_key_values(const Arguments& given,
                                                    const char* option = "option");

/// Makes `selection` the default device; no effect if empty. Errors: User, with the available
/// devices.
void choose_device(const std::string& selection);

/// Prints one document on one line of stdout: for every --json, and for the last line of text
/// output that ends with a result. Names are in snake_case with their unit; missing values are
/// null.
void print_json(const nlohmann::ordered_json& document);

}  // namespace plugrad::tools
