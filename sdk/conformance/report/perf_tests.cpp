#include "conformance/test.h"

namespace plugrad::conformance {

void add_perf_tests(Tests&) {}

}  // namespace plugrad::conformance
