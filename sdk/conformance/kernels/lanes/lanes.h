// Groups of lane tests, one file each.
#pragma once

#include "conformance/test.h"

namespace plugrad::conformance {

void add_vector_alu_tests(Tests& tests);
void add_vector_move_tests(Tests& tests);
void add_access_tests(Tests& tests);  // gates, private arrays: L1 for f32, i32 and bool, else L2
void add_atomic_tests(Tests& tests);
void add_local_tests(Tests& tests);
void add_contract_tests(Tests& tests);
void add_tensor_core_tests(Tests& tests);
void add_async_copy_tests(Tests& tests);

}  // namespace plugrad::conformance
