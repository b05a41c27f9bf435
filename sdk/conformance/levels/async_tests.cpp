#include "conformance/test.h"

namespace plugrad::conformance {

void add_async_tests(Tests&) {}

}  // namespace plugrad::conformance
