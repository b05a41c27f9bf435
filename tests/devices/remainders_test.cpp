// fmod equals C's on every device: its values, and the sign of zero remainders.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "devices/at_hand.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

class Remainders : public testing::TestWithParam<std::string> {
 protected:
  /// Devices may flush denormals unless they claim to preserve them.
  bool keeps_denormals() const {
    for (runtime::Device* device : runtime::Registry::instance().open_all())
      if (device->name() == GetParam()) return device->caps().denormals == PGR_DENORMALS_PRESERVE;
    return false;
  }
};

template <class Real>
std::vector<Real> edges(bool with_denormals) {
  using Limits = std::numeric_limits<Real>;
  std::vector<Real> sizes = {0,
                             0.25,
                             0.5,
                             0.75,
                             1,
                             Real(1.5),
                             2,
                             Real(2.5),
                             3,
                             Real(0.1),
                             10,
                             1000,
                             Real(1e10),
                             Real(12345678),
                             Limits::infinity(),
                             Limits::max(),
                             Limits::min()};
  if (with_denormals)
    sizes.insert(sizes.end(), {Limits::denorm_min(), 3 * Limits::denorm_min(), Limits::min() / 2});
  std::vector<Real> out = {Limits::quiet_NaN()};
  for (Real size : sizes) out.insert(out.end(), {size, -size});
  return out;
}

/// Beyond 2^48 the quotient has more bits than two divisions determine (docs/accuracy.md).
template <class Real>
bool is_exact(Real x, Real y) {
  return y == 0 || !std::isfinite(x) || !std::isfinite(y) || std::fabs(x / y) < 0x1p48;
}

template <class Real>
std::string shown(Real value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);  // -0 for negative zero
}

template <class Real>
void expect_as_in_c(const std::string& device, bool with_denormals) {
  std::vector<Real> x, y;
  for (Real a : edges<Real>(with_denormals))
    for (Real b : edges<Real>(with_denormals))
      if (is_exact(a, b)) {
        x.push_back(a);
        y.push_back(b);
      }
  const Tensor left = Tensor::from(x, device).realize(), right = Tensor::from(y, device).realize();
  const std::vector<Real> rest = left.fmod(right).to_vector<Real>();
  for (size_t i = 0; i < x.size(); ++i)
    EXPECT_EQ(shown(rest[i]), shown(std::fmod(x[i], y[i])))
        << "fmod(" << x[i] << ", " << y[i] << ")";
}

TEST_P(Remainders, AreThoseOfC) {
  expect_as_in_c<float>(GetParam(), keeps_denormals());
  if (GetParam().starts_with("CPU") || GetParam().starts_with("REFERENCE"))
    expect_as_in_c<double>(GetParam(), true);
}

INSTANTIATE_TEST_SUITE_P(Devices, Remainders, testing::ValuesIn(devices_at_hand()),
                         [](const auto& device) { return test_name(device.param); });

}  // namespace
}  // namespace plugrad
