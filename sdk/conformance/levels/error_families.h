// The groups of launch and error tests.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

void add_launch_tests(Tests& tests);
void add_binary_tests(Tests& tests);  // programs, damaged binaries and kernel IR
void add_caps_tests(Tests& tests);    // device capabilities

}  // namespace plugrad::conformance
