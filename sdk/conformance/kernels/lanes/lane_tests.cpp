#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {

void add_lane_tests(Tests& tests) {
  add_vector_alu_tests(tests);
  add_vector_move_tests(tests);
  add_access_tests(tests);
  add_atomic_tests(tests);
  add_local_tests(tests);
  add_contract_tests(tests);
  add_tensor_core_tests(tests);
  add_async_copy_tests(tests);
}

}  // namespace plugrad::conformance
