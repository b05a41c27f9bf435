#include "vectors.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

TEST(Elementwise, ValuesAndGradientsAgreeWithPyTorch) {
  for (const vectors::Unary& v : vectors::kUnary) {
    const Tensor x = Tensor::from(v.x).requires_grad_(), y = v.function(x);
    expect_near(values(y), v.y, 1e-6, 2e-5, v.text);
    expect_near(values(gradient(y.sum(), {x})[0]), v.gradient, 2e-6, 1e-4,
                std::string("gradient of ") + v.text);
  }
}

TEST(Functions, ValuesAndGradientsAgreeWithPyTorch) {
  for (const vectors::Shaped& v : vectors::kShaped) {
    const Tensor x = wave(std::sin, v.x, 0.1, 0.7).requires_grad_(), y = v.function(x);
    EXPECT_EQ(y.shape(), v.y_shape) << v.text;
    EXPECT_EQ(y.dtype(), DType::F64) << v.text;
    expect_near(values(y), v.y, 1e-8, 1e-7, v.text);
    const Tensor flow = gradient((y * cosine(y.shape())).sum(), {x})[0];
    expect_near(values(flow), v.gradient, 1e-8, 1e-6, std::string("gradient of ") + v.text);
  }
}

/// The n-th derivative of the sum of f.
template <class F>
Tensor derivative(F f, const Tensor& x, int order) {
  Tensor y = f(x);
  for (int i = 0; i < order; ++i) y = gradient(y.sum(), {x})[0];
  return y;
}

TEST(Elementwise, HigherDerivatives) {
  const std::vector<double> at = {0.3, 0.8, 1.7};
  const Tensor x = Tensor::from(at).requires_grad_();
  const auto expect = [&](auto f, int order, double (*expected)(double)) {
    std::vector<double> list;
    for (double v : at) list.push_back(expected(v));
    expect_near(values(derivative(f, x, order)), list, 1e-9, 1e-9);
  };
  expect([](const Tensor& t) { return t.pow(3); }, 2, [](double v) { return 6 * v; });
  expect([](const Tensor& t) { return t.pow(3); }, 3, [](double) { return 6.0; });
  expect([](const Tensor& t) { return t.square().sin(); }, 2,
         [](double v) { return 2 * std::cos(v * v) - 4 * v * v * std::sin(v * v); });
  expect([](const Tensor& t) { return t.pow(2.5); }, 2,
         [](double v) { return 3.75 * std::sqrt(v); });
  expect([](const Tensor& t) { return t.pow(t); }, 2,
         [](double v) { return std::pow(v, v) * (std::pow(std::log(v) + 1, 2) + 1 / v); });
  expect([](const Tensor& t) { return t.tanh(); }, 2,
         [](double v) { return -2 * std::tanh(v) * (1 - std::tanh(v) * std::tanh(v)); });
  expect([](const Tensor& t) { return t.log1p(); }, 3,
         [](double v) { return 2 / std::pow(1 + v, 3); });
  expect([](const Tensor& t) { return t.expm1(); }, 3, [](double v) { return std::exp(v); });
  expect([](const Tensor& t) { return t.atan(); }, 2,
         [](double v) { return -2 * v / std::pow(1 + v * v, 2); });
  expect([](const Tensor& t) { return t.asinh(); }, 2,
         [](double v) { return -v / std::pow(1 + v * v, 1.5); });
  expect([](const Tensor& t) { return t.erf(); }, 2,
         [](double v) { return -4 * v / std::sqrt(std::acos(-1.0)) * std::exp(-v * v); });
  expect([](const Tensor& t) { return t.sigmoid(); }, 2,
         [](double v) {
           const double s = 1 / (1 + std::exp(-v));
           return s * (1 - s) * (1 - 2 * s);
         });
}

// Arguments at which the function is constant to all digits.
TEST(Elementwise, DerivativesFarOutHaveTheirDigits) {
  const auto expect = [](auto f, float at, double slope, const char* name) {
    const Tensor x = Tensor::from({at}).requires_grad_();
    EXPECT_NEAR(values(derivative(f, x, 1))[0] / slope, 1, 3e-6) << name;
  };
  const double e20 = std::exp(-20.0);
  for (float side : {-1.f, 1.f}) {
    expect([](const Tensor& t) { return t.tanh(); }, side * 10, 1 / std::pow(std::cosh(10.0), 2),
           "tanh");
    expect([](const Tensor& t) { return t.sigmoid(); }, side * 20, e20 / std::pow(1 + e20, 2),
           "sigmoid");
    expect([](const Tensor& t) { return t.erf(); }, side * 5,
           2 / std::sqrt(std::acos(-1.0)) * std::exp(-25.0), "erf");
    expect([](const Tensor& t) { return t.atan(); }, side * 3e4f, 1 / (9e8 + 1), "atan");
  }
  expect([](const Tensor& t) { return t.softplus(); }, -20, e20 / (1 + e20), "softplus");
  expect([](const Tensor& t) { return t.log1p(); }, 1e6f, 1 / (1e6 + 1), "log1p");
}

// The bound of erf for f32 in math.cpp, for every exponent below its limit.
TEST(Elementwise, ErfIsWithinFiveUnitsInTheLastPlace) {
  std::vector<float> at;
  for (float scale = 0x1p-20f; scale < 8; scale *= 2)
    for (int i = 0; i < 300; ++i) at.push_back(scale * (1 + static_cast<float>(i) / 300));
  const size_t positive = at.size();
  for (size_t i = 0; i < positive; ++i) at.push_back(-at[i]);
  const std::vector<double> found = values(Tensor::from(at).erf());
  for (size_t i = 0; i < at.size(); ++i) {
    const double expected = std::erf(static_cast<double>(at[i]));
    const double unit = std::ldexp(1.0, std::ilogb(expected) - 23);
    EXPECT_LE(std::abs(found[i] - expected), 5 * unit) << at[i];
    EXPECT_LE(std::abs(found[i]), 1) << at[i];
    EXPECT_EQ(found[i], -found[(i + positive) % at.size()]) << at[i];
  }
  const Tensor ends = Tensor::from({-0.f, 4.f, -4.f, 1e30f, INFINITY, -INFINITY, NAN}).erf();
  expect_values(ends, {-0.0, 1, -1, 1, 1, -1, NAN}, 0, 0);
  EXPECT_TRUE(std::signbit(values(ends)[0]));
}

// Quotients beyond the mantissa, infinite divisors, signs; expected values as in Python.
TEST(Elementwise, RemaindersAreExact) {
  const Tensor a = Tensor::from({1e10f, 12345678.f, 5.f, -5.f, 7.f, -7.f, 1.f});
  const Tensor b = Tensor::from({3.f, 0.5f, INFINITY, INFINITY, -2.5f, 2.5f, 0.f});
  expect_values(a % b, {1, 0, 5, INFINITY, -0.5, 0.5, NAN}, 0, 0);
  expect_values(a.fmod(b), {1, 0, 5, -5, 2, -2, NAN}, 0, 0);
  const Tensor one = Tensor::from({1.0, -1.0, 6.0}), tenth = Tensor::from({0.1, 0.1, 0.0});
  expect_values(one.floor_div(tenth), {9, -10, INFINITY}, 0, 0);
  expect_values(one.div(tenth, Rounding::Trunc), {10, -10, INFINITY}, 0, 0);
  expect_values(Tensor::from({1e30f, -1e20f, 1e30f}) % Tensor::from({7.f, 3.f, -7.f}), {1, 1, -6},
                0, 0);
  const Tensor large = Tensor::full({}, 1e300, DType::F64);  // folded
  EXPECT_EQ((large % 7.0).item<double>(), std::fmod(1e300, 7.0));
  EXPECT_FALSE(std::signbit((Tensor::from({-0.0f}) % 3.0).item<float>()));
  EXPECT_TRUE(std::signbit((Tensor::from({0.0f}) % -3.0).item<float>()));
}

// By x everywhere 1; by y the quotient, rounded as the function says, with the sign turned.
TEST(Elementwise, GradientsOfRemainders) {
  Tensor x = Tensor::from({7.f, -7.f, 6.f, 1e10f}), y = Tensor::from({2.5f, 2.5f, -2.f, 3.f});
  x.requires_grad_(), y.requires_grad_();
  x.fmod(y).sum().backward();
  expect_values(x.grad(), {1, 1, 1, 1});
  expect_values(y.grad(), {-2, 2, 3, -3333333248.f});
  x.zero_grad(), y.zero_grad();
  (x % y).sum().backward();
  expect_values(x.grad(), {1, 1, 1, 1});
  expect_values(y.grad(), {-2, 3, 3, -3333333248.f});
}

// PyTorch's names are aliases.
TEST(Elementwise, Aliases) {
  const Tensor x = Tensor::from({-2.5, 0.4, 3.0}), y = Tensor::from({2.0, -0.3, 0.7});
  EXPECT_EQ(values(x.clip(-1, 1)), values(x.clamp(-1, 1)));
  EXPECT_EQ(values(x.swish()), values(x.silu()));
  EXPECT_EQ(values(x.mod(y)), values(x % y));
  EXPECT_EQ(values(x.div(y)), values(x / y));
  EXPECT_EQ(values(x.empty_like(DType::I32)), values(x.zeros_like(DType::I32)));
  EXPECT_TRUE(x.allclose(x + 1e-9));
  EXPECT_FALSE(x.allclose(x + 1e-3));
  EXPECT_FALSE(Tensor::from({NAN}).allclose(NAN));
  EXPECT_TRUE(Tensor::from({NAN}).allclose(NAN, 0, 0, true));
}

}  // namespace
}  // namespace plugrad
