#include "conformance/test.h"

namespace plugrad::conformance {

void add_core_kernel_tests(Tests&) {}

}  // namespace plugrad::conformance
