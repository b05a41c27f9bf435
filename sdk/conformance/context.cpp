#include <cmath>

#include "conformance/test.h"

namespace plugrad::conformance {

void Context::measure(std::string_view metric, double value, std::string_view input) {
  // A NaN is worse than any number, and stays.
  if (!result_.metric.empty() && (std::isnan(result_.worst) || value <= result_.worst)) return;
  result_.metric = metric;
  result_.worst = value;
  result_.worst_input = input;
}

void Context::about(std::span<const std::byte> kernel_ir) {
  kernel_.assign(kernel_ir.begin(), kernel_ir.end());
  if (surroundings_.about) surroundings_.about(kernel_ir);
}

void expect(bool condition, std::string_view message) {
  if (!condition) throw Failed(std::string(message));
}

}  // namespace plugrad::conformance
