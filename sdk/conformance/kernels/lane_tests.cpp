#include "conformance/test.h"

namespace plugrad::conformance {

void add_lane_tests(Tests&) {}

}  // namespace plugrad::conformance
