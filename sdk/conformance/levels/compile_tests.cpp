#include "conformance/test.h"

namespace plugrad::conformance {

void add_compile_tests(Tests&) {}

}  // namespace plugrad::conformance
