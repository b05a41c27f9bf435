// Measures this machine for `plugrad plan-scale`.
#pragma once

#include <string>

namespace plugrad::tools {

/// Under mpirun: rates of the default device of rank 0, alone and while all ranks work, and the link
/// between the ranks. Rank 0 writes the file. Returns the exit code.
int measure_machine(const std::string& path);

}  // namespace plugrad::tools
