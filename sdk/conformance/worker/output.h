// A file in memory that takes what a process prints.
#pragma once

#include <string>

namespace plugrad::conformance {

// At most 4 MiB; what is printed beyond is lost. The descriptor is 10 or higher.
int make_output_file();
// What was printed up to the file's position.
std::string read_output(int file);

}  // namespace plugrad::conformance
