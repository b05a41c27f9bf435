#include "runtime/checks/compare/differences.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/checks/compare/values.h"
#include "runtime/checks/live_objects.h"

namespace plugrad::runtime {
namespace {

// The variants sample the directions of rounding errors; this factor covers the others.
constexpr double kBoundFactor = 8;

class Region {
 public:
  Region(uint32_t dtype, const Tolerance& tolerance) : dtype_(dtype), tolerance_(tolerance) {}

  std::span<const std::byte> before, got, expected;
  std::vector<std::span<const std::byte>> variants;

  bool differs(uint64_t index) const {
    const uint64_t a = bits_at(got, dtype_, index), b = bits_at(expected, dtype_, index);
    if (a == b) return false;
    if (tolerance_.is_partial && b == bits_at(before, dtype_, index)) return false;
    if (!is_float(dtype_)) return !tolerance_.is_rounded || is_beyond(index, a, b);
    if (is_nan(dtype_, a) && is_nan(dtype_, b)) return false;
    if (tolerance_.flushes && is_tiny(a) && is_tiny(b) &&
        !(is_zero(dtype_, a) && is_zero(dtype_, b)))
      return false;
    if (tolerance_.any_zero && is_zero(dtype_, a) && is_zero(dtype_, b)) return false;
    return !tolerance_.is_rounded || is_beyond(index, a, b);
  }

  // Errors that cancel in all variants of one element do not in its neighbours, whose mean counts
  // for it too.
  double bound(uint64_t index) const {
    if (!tolerance_.is_rounded) return 0;
    const double most = std::max(largest_move(index), mean_move());
    return kBoundFactor * most + ulp_of(dtype_, bits_at(expected, dtype_, index));
  }

 private:
  // Infinite where a variant leaves the finite numbers.
  double largest_move(uint64_t index) const {
    const double value = number_of(dtype_, bits_at(expected, dtype_, index));
    double most = 0;
    for (const auto& variant : variants) {
      const double moved = number_of(dtype_, bits_at(variant, dtype_, index));
      if (!std::isfinite(moved) || !std::isfinite(value)) {
        if (moved != value && !(std::isnan(moved) && std::isnan(value))) return INFINITY;
      } else {
        most = std::max(most, std::fabs(moved - value));
      }
    }
    return most;
  }

  // Over the elements that stay finite.
  double mean_move() const {
    if (mean_move_ >= 0) return mean_move_;
    double sum = 0;
    uint64_t count = 0;
    for (uint64_t i = 0; i < expected.size() / std::max<uint64_t>(1, dtype_bytes(dtype_)); ++i) {
      const double move = largest_move(i);
      if (!std::isfinite(move)) continue;
      sum += move;
      ++count;
    }
    return mean_move_ = count > 0 ? sum / static_cast<double>(count) : 0;
  }

  bool is_tiny(uint64_t bits) const { return is_zero(dtype_, bits) || is_denormal(dtype_, bits); }

  bool is_beyond(uint64_t index, uint64_t a, uint64_t b) const {
    const double distance = std::fabs(number_of(dtype_, a) - number_of(dtype_, b));
    const double move = largest_move(index);
    if (std::isinf(move) || distance <= kBoundFactor * move) return false;
    return !(distance <= bound(index));
  }

  const uint32_t dtype_;
  const Tolerance& tolerance_;
  mutable double mean_move_ = -1;  // not known yet
};

}  // namespace

std::optional<Difference> first_difference(const KernelLines& kernel, const LaunchData& data,
                                           const HostMemory& got, const HostMemory& expected,
                                           std::span<const HostMemory> variants,
                                           const Tolerance& tolerance) {
  const std::vector<uint32_t> params = LaunchData::buffer_params(kernel);
  std::vector<bool> done(data.regions.size());
  for (uint32_t argument = 0; argument < data.region_of.size(); ++argument) {
    const std::size_t region = data.region_of[argument];
    if (done[region] || argument >= params.size()) continue;
    done[region] = true;
    if (got[region] == expected[region]) continue;
    const uint32_t dtype = kernel.params[params[argument]].dtype;
    Region both(dtype, tolerance);
    both.before = data.regions[region];
    both.got = got[region];
    both.expected = expected[region];
    for (const HostMemory& variant : variants) both.variants.emplace_back(variant[region]);
    Difference out{.region = region, .argument = argument, .dtype = dtype};
    out.elements = kernel.params[params[argument]].elem_count;
    const uint64_t whole = got[region].size() / std::max<uint64_t>(1, dtype_bytes(dtype));
    for (uint64_t i = 0; i < whole; ++i)
      if (both.differs(i) && out.count++ == 0) out.index = i;
    if (out.count == 0) continue;
    out.got = bits_at(got[region], dtype, out.index);
    out.expected = bits_at(expected[region], dtype, out.index);
    out.ulps = ulps_between(dtype, out.got, out.expected);
    out.bound = both.bound(out.index);
    return out;
  }
  return std::nullopt;
}

}  // namespace plugrad::runtime
