#include "conformance/kernels/shapes/shapes.h"

namespace plugrad::conformance {

void add_shape_tests(Tests& tests) {
  add_reduction_tests(tests);
  add_product_tests(tests);
  add_view_tests(tests);
  add_large_tests(tests);
}

}  // namespace plugrad::conformance
