// Starts the suite's child processes.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

namespace plugrad::conformance {

struct SpawnPlan {
  std::vector<std::string> words;          // the program and its arguments
  int output;                              // of this process, the child's stdout and stderr
  std::vector<std::pair<int, int>> files;  // further descriptors here and there; there above 2
  bool leads_group = false;                // its own children end with it
};

// The child reads nothing. Throws std::runtime_error where the program cannot be started.
pid_t spawn(const SpawnPlan& plan);

}  // namespace plugrad::conformance
