// L0: a host can load the plugin and keep running.
#include <vector>

#include "conformance/levels/loading/l0_families.h"

namespace plugrad::conformance {

void add_l0_tests(Tests& tests) {
  add_library_tests(tests);
  add_hello_tests(tests);
  add_interface_tests(tests);
  add_clamp_tests(tests);
  add_process_tests(tests);
}

std::span<const FreshCheck> fresh_checks() {
  static const std::vector<FreshCheck> checks = [] {
    std::vector<FreshCheck> all;
    for (const auto part : {hello_checks(), process_checks()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return checks;
}

}  // namespace plugrad::conformance
