#include "conformance/test.h"

namespace plugrad::conformance {

void add_error_tests(Tests&) {}

}  // namespace plugrad::conformance
