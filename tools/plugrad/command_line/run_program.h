// Runs a program's main function: errors become messages and exit codes.
#pragma once

#include <functional>
#include <initializer_list>

#include "command.h"

namespace plugrad::tools {

/// Calls `run` with the arguments after the program's name, and ends the process with its exit
/// code, without the exit handlers of plugins and drivers, which may crash; if it throws, prints a
/// message on stderr and ends with the error's code. With a sanitizer it returns the code.
int run_program(int argc, char** argv, const std::function<int(const Arguments&)>& run);

/// What a companion of `plugrad` runs if its first argument is this name.
struct Action {
  const char* name;
  int (*run)(const Arguments& arguments);
};

/// The main function of a companion.
int run_companion(int argc, char** argv, std::initializer_list<Action> actions);

}  // namespace plugrad::tools
