#include "conformance/kernels/mandatory/core.h"

namespace plugrad::conformance {

void add_core_kernel_tests(Tests& tests) {
  add_mandatory_tests(tests);
  add_claimed_lanes_tests(tests);
  add_control_tests(tests);
  add_argument_tests(tests);
  add_fused_tests(tests);
}

}  // namespace plugrad::conformance
