#include "models/outputs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "tensor/host_values.h"

namespace plugrad::tools {
namespace {

struct Difference {
  double absolute = 0;  // the largest; infinite where one element is NaN or infinite, the other not
  double largest = 0;   // finite element that is wanted
  double relative() const { return largest > 0 ? absolute / largest : absolute; }
};

Difference largest_difference(const std::vector<double>& got, const std::vector<double>& wanted) {
  Difference result;
  for (size_t i = 0; i < got.size(); ++i) {
    if (std::isfinite(wanted[i])) result.largest = std::max(result.largest, std::abs(wanted[i]));
    if (got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) continue;
    const double distance = std::abs(got[i] - wanted[i]);
    result.absolute =
        std::max(result.absolute,
                 std::isfinite(distance) ? distance : std::numeric_limits<double>::infinity());
  }
  return result;
}

}  // namespace

std::vector<double> elements_of(const Tensor& tensor) {
  const std::vector<std::byte> bytes = tensor.to_bytes();
  const DType dtype = tensor.dtype();
  const size_t size = size_of(dtype);
  std::vector<double> elements;
  for (size_t at = 0; at + size <= bytes.size(); at += size) {
    const uint64_t bits = tensor::bits_in_memory(bytes.data() + at, dtype);
    elements.push_back(is_float(dtype)       ? std::bit_cast<double>(bits)
                       : dtype == DType::U64 ? static_cast<double>(bits)
                                             : static_cast<double>(static_cast<int64_t>(bits)));
  }
  return elements;
}

// Sums in another order differ by some roundings of their terms, which may be larger than the sum:
// of the largest element, and of terms near 1 before a sigmoid or a difference.
Tolerance tolerance_of(DType output, bool has_halves) {
  if (!is_float(output)) return {};
  if (has_halves || output == DType::F16 || output == DType::BF16) return {4e-3, 1e-3};
  return {1e-4, 1e-6};
}

OutputDifference difference_of(const Tensor& got, const Tensor& wanted, bool has_halves) {
  const Difference difference = largest_difference(elements_of(got), elements_of(wanted));
  const Tolerance allowed = tolerance_of(wanted.dtype(), has_halves);
  return {difference.relative(), allowed,
          difference.absolute <= allowed.relative * difference.largest + allowed.absolute};
}

}  // namespace plugrad::tools
