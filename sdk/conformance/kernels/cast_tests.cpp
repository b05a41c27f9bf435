#include "conformance/test.h"

namespace plugrad::conformance {

void add_cast_tests(Tests&) {}

}  // namespace plugrad::conformance
