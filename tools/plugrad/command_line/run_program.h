// How a program of plugrad ends: errors become messages and exit codes.
#pragma once

#include "command.h"

namespace plugrad::tools {

/// Calls `run` with the arguments behind the program's name; gives its exit code, or that of the
/// error that it threw, after a message on stderr.
int run_program(int argc, char** argv, int (*run)(const Arguments& arguments));

}  // namespace plugrad::tools
