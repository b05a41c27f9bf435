// Checks that need a process of their own, in which nothing of the plugin ran before: hellos, exit,
// what stays behind. The process is this program again, started with --check.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>

#include "conformance/test.h"

namespace plugrad::conformance {

struct FreshTarget {
  std::string plugin_path;
  uint32_t device_index = 0;
  std::map<std::string, std::string> device_options, plugin_options;
  std::string argument;  // of the check
};

struct FreshCheck {
  std::string_view name;
  void (*run)(const FreshTarget& target);  // ends like a test: by Failed, Unsupported or return
};
std::span<const FreshCheck> fresh_checks();

// Runs the check of this name in a new process, and ends the test as the check ended; as failed
// where the process crashed, or its exit was not clean. Gives what it printed.
std::string run_fresh(Context& context, std::string_view check, const std::string& argument = "");

inline constexpr std::string_view kFreshFlag = "--check";
// The new process's main.
int run_fresh_check(int argc, char** argv);

}  // namespace plugrad::conformance
