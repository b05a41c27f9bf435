// A subcommand of `plugrad`: one file each, listed in main.cpp.
#pragma once

#include <boost/program_options.hpp>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace plugrad::tools {

using Arguments = std::vector<std::string>;

/// Exit codes of the command line's contract.
enum ExitCode : int { kSuccess = 0, kFailure = 1, kBadUsage = 2 };

/// The arguments make no sense; main prints the text and exits with kBadUsage.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Command {
  const char* name;
  const char* summary;  // null: run by this program itself, not listed
  int (*run)(const Arguments& arguments);
};

int run_bench(const Arguments& arguments);
int run_cache(const Arguments& arguments);
int run_conformance(const Arguments& arguments);
int run_conformance_model(const Arguments& arguments);
int run_data(const Arguments& arguments);
int run_devices(const Arguments& arguments);
/// Processes that `plugrad bench` starts: a peer that takes turns with it, a training's first
/// steps.
int run_bench_peer(const Arguments& arguments);
int run_bench_steps(const Arguments& arguments);
/// One kernel in a process of its own, whose time `plugrad bench` measures.
int run_first_kernel(const Arguments& arguments);
int run_explain(const Arguments& arguments);
int run_new_plugin(const Arguments& arguments);
int run_train(const Arguments& arguments);
int run_tune(const Arguments& arguments);

/// Options and positional words of one subcommand, read with Boost.Program_options.
struct Parsed {
  boost::program_options::variables_map values;
  bool help = false;

  bool has(const char* name) const { return values.count(name) != 0; }
  template <class T>
  T get(const char* name) const {
    return values[name].as<T>();
  }
};

/// Adds --help; prints `usage` and the options when it is given. `words` names the positional
/// argument that collects what is no option; empty: there is none. Errors: UsageError.
Parsed parse(const Arguments& arguments, const std::string& usage,
             boost::program_options::options_description options, const char* words = "");

/// Makes `selection` the default device; nothing for an empty one. Errors: User, with what is
/// there.
void choose_device(const std::string& selection);

/// One document and nothing else on stdout.
void print_json(const nlohmann::ordered_json& document, bool indented);

}  // namespace plugrad::tools
