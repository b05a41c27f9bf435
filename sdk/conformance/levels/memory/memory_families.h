// The groups of memory tests.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

void add_copy_tests(Tests& tests);  // copies, fills and their ranges
void add_map_tests(Tests& tests);   // mapping and sub-buffers

}  // namespace plugrad::conformance
