// fmod equals C's on every device, % and floor_div equal Python's: every bit, for any quotient.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "devices/at_hand.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

class Remainders : public testing::TestWithParam<std::string> {
 protected:
  const pgr_device_caps& caps() const {
    for (runtime::Device* device : runtime::Registry::instance().open_all())
      if (device->name() == GetParam()) return device->caps();
    throw std::runtime_error("no device " + GetParam());
  }
  /// Devices may flush denormals unless they claim to preserve them.
  bool keeps_denormals() const { return caps().denormals == PGR_DENORMALS_PRESERVE; }
  bool computes(DType dtype) const {
    return (caps().op_dtypes[PGR_OP_ADD] >> static_cast<uint32_t>(dtype) & 1) != 0;
  }
};

template <class Real>
std::vector<Real> edges(bool with_denormals) {
  using Limits = std::numeric_limits<Real>;
  std::vector<Real> sizes = {
      0, 0.25,      0.5, 0.75, 1,    Real(1.5),  2,          Real(2.5),     3,
      7, Real(0.1), 10,  1000, 1e10, Real(1e20), Real(1e30), Real(12345678)};
  sizes.insert(sizes.end(), {Limits::infinity(), Limits::max(), Limits::max() / 3, Limits::min(),
                             1 / Limits::epsilon(), 2 / Limits::epsilon() - 1});
  if (with_denormals)
    sizes.insert(sizes.end(), {Limits::denorm_min(), 3 * Limits::denorm_min(), Limits::min() / 2});
  std::vector<Real> out = {Limits::quiet_NaN()};
  for (Real size : sizes) out.insert(out.end(), {size, -size});
  return out;
}

/// All pairs of edges, and pairs of random exponents.
template <class Real>
std::pair<std::vector<Real>, std::vector<Real>> operands(bool with_denormals) {
  std::pair<std::vector<Real>, std::vector<Real>> out;
  const std::vector<Real> known = edges<Real>(with_denormals);
  for (Real a : known)
    for (Real b : known) out.first.push_back(a), out.second.push_back(b);
  std::mt19937 random(5);
  std::uniform_real_distribution<Real> mantissa(1, 2);
  std::uniform_int_distribution<int> exponent(std::numeric_limits<Real>::min_exponent,
                                              std::numeric_limits<Real>::max_exponent - 2);
  for (int i = 0; i < 1000; ++i) {
    const int of_y = exponent(random), near = of_y + exponent(random) % 30;
    const int of_x = i % 2 == 0 ? exponent(random) : std::clamp(near, -125, 125);
    out.first.push_back(std::ldexp(mantissa(random), of_x) * (i % 3 == 0 ? -1 : 1));
    out.second.push_back(std::ldexp(mantissa(random), of_y) * (i % 5 == 0 ? -1 : 1));
  }
  return out;
}

// As CPython's float_divmod, but for x // 0, which is x / 0, and infinities by the array API.
template <class Real>
Real python_mod(Real x, Real y) {
  const Real rest = std::fmod(x, y);
  if (rest == 0) return std::copysign(Real(0), y);
  return (rest < 0) != (y < 0) ? rest + y : rest;
}
template <class Real>
Real python_floor_div(Real x, Real y) {
  const Real ratio = x / y;
  if (y == 0 || std::isinf(ratio)) return ratio;
  if (std::isinf(y) && std::isfinite(x))
    return x != 0 && (x < 0) != (y < 0) ? Real(-1) : std::copysign(Real(0), ratio);
  const Real q = std::nearbyint((x - python_mod(x, y)) / y);
  return q == 0 ? std::copysign(Real(0), ratio) : q;
}

template <class Real>
std::string shown(Real value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);  // -0 for negative zero
}

template <class Real>
void expect_equal(const Tensor& found, const std::vector<Real>& x, const std::vector<Real>& y,
                  const std::function<Real(Real, Real)>& expected, const char* name) {
  const std::vector<Real> values = found.to_vector<Real>();
  for (size_t i = 0; i < x.size(); ++i)
    ASSERT_EQ(shown(values[i]), shown(expected(x[i], y[i])))
        << name << "(" << shown(x[i]) << ", " << shown(y[i]) << ")";
}

template <class Real>
void expect_exact(const std::string& device, bool with_denormals) {
  const auto [x, y] = operands<Real>(with_denormals);
  const Tensor left = Tensor::from(x, device).realize(), right = Tensor::from(y, device).realize();
  expect_equal<Real>(
      left.fmod(right), x, y, [](Real a, Real b) { return std::fmod(a, b); }, "fmod");
  expect_equal<Real>(left % right, x, y, python_mod<Real>, "mod");
  expect_equal<Real>(left.floor_div(right), x, y, python_floor_div<Real>, "floor_div");
  for (Real by : {Real(3), Real(-0.1)}) {
    const std::vector<Real> divisors(x.size(), by);
    expect_equal<Real>(left % by, x, divisors, python_mod<Real>, "mod by a constant");
  }
}

TEST_P(Remainders, AreExact) {
  expect_exact<float>(GetParam(), keeps_denormals());
}

TEST_P(Remainders, OfDoublesAreExact) {
  if (!computes(DType::F64) || !computes(DType::I64)) GTEST_SKIP() << "no f64";
  expect_exact<double>(GetParam(), true);
}

// Each is computed in f32, where it is exact, and rounded once.
TEST_P(Remainders, OfHalvesAreExact) {
  const auto [x, y] = operands<float>(false);
  const Tensor left = Tensor::from(x, GetParam()), right = Tensor::from(y, GetParam());
  for (DType dtype : {DType::F16, DType::BF16}) {
    const Tensor a = left.cast(dtype).realize(), b = right.cast(dtype).realize();
    const std::vector<float> p = a.cast(DType::F32).to_vector<float>();
    const std::vector<float> q = b.cast(DType::F32).to_vector<float>();
    std::vector<float> rest, modulo;
    for (size_t i = 0; i < p.size(); ++i) {
      rest.push_back(std::fmod(p[i], q[i]));
      modulo.push_back(python_mod(p[i], q[i]));
    }
    const auto rounded = [&](const std::vector<float>& values) {
      return Tensor::from(values, GetParam()).cast(dtype).cast(DType::F32).to_vector<float>();
    };
    rest = rounded(rest), modulo = rounded(modulo);
    const std::vector<float> found = a.fmod(b).cast(DType::F32).to_vector<float>(),
                             found_mod = (a % b).cast(DType::F32).to_vector<float>();
    for (size_t i = 0; i < p.size(); ++i) {
      ASSERT_EQ(shown(found[i]), shown(rest[i])) << "fmod(" << p[i] << ", " << q[i] << ")";
      ASSERT_EQ(shown(found_mod[i]), shown(modulo[i])) << p[i] << " % " << q[i];
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Remainders, testing::ValuesIn(devices_at_hand()),
                         [](const auto& device) { return test_name(device.param); });

}  // namespace
}  // namespace plugrad
