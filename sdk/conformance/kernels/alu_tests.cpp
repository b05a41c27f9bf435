#include "conformance/test.h"

namespace plugrad::conformance {

void add_alu_tests(Tests&) {}

}  // namespace plugrad::conformance
