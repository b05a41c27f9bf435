// Runs a program's main function: errors become messages and exit codes.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Calls `run` with the arguments after the program's name. Returns its exit code; if it throws,
/// prints a message on stderr and returns the error's code.
int run_program(int argc, char** argv, int (*run)(const Arguments& arguments));

}  // namespace plugrad::tools
