// Runs a program's main function: errors become messages and exit codes.
#pragma once

#include <functional>
#include <initializer_list>

#include "command.h"

namespace plugrad::tools {

/// Calls `run` with the arguments after the program's name. Returns its exit code; if it throws,
/// prints a message on stderr and returns the error's code.
int run_program(int argc, char** argv, const std::function<int(const Arguments&)>& run);

/// What a companion of `plugrad` runs if its first argument is this name.
struct Action {
  const char* name;
  int (*run)(const Arguments& arguments);
};

/// The main function of a companion.
int run_companion(int argc, char** argv, std::initializer_list<Action> actions);

}  // namespace plugrad::tools
