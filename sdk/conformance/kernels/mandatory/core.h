// Groups of L1 tests, one file each, and the mandatory ops.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

void add_mandatory_tests(Tests& tests);      // every mandatory op on f32, i32 and bool
void add_control_tests(Tests& tests);        // loops, conditions, order of memory
void add_argument_tests(Tests& tests);       // groups, tails, scalars, aliasing, many parameters
void add_fused_tests(Tests& tests);          // kernels made by plugrad's own compiler
void add_claimed_lanes_tests(Tests& tests);  // vectors of every claimed width and dtype

// True if every device must support the op on the dtype (docs/kernel-ir.md).
bool is_mandatory(uint32_t op, uint32_t dtype);

}  // namespace plugrad::conformance
