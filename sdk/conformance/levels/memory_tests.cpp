#include "conformance/test.h"

namespace plugrad::conformance {

void add_memory_tests(Tests&) {}

}  // namespace plugrad::conformance
