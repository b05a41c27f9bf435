// What a crashing worker leaves behind: the signal and the stack, written to a pipe.
#pragma once

#include <string>

namespace plugrad::conformance {

// From here on a fatal signal writes its name and the stack to the pipe, and ends the process.
void report_crashes_to(int pipe);

// The text from the pipe for people: C++ names demangled, the frames of the handler left out.
std::string readable_stack(const std::string& raw);

// "SIGSEGV".
std::string signal_name(int signal);

}  // namespace plugrad::conformance
