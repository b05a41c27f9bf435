// Gradients stated by the documents. The op cases (tests/ops) check every op against central
// differences in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

Tensor number(double value) {
  return Tensor::from({value}, Shape{});
}
double slope(const Tensor& y, const Tensor& x) {
  return gradient(y, {x})[0].item<double>();
}

TEST(Gradients, a_parabola) {
  const Tensor x = number(2);
  EXPECT_DOUBLE_EQ(slope(x * x + x * 3 + 1, x), 7.0);
}

TEST(Gradients, a_logarithm) {
  const Tensor x = number(2);
  EXPECT_NEAR(slope((x * x + 1).log(), x), 0.8, 1e-14);
}

TEST(Gradients, a_sum_of_squares) {
  const Tensor x = Tensor::from({2.0, 3.0});
  EXPECT_EQ(gradient((x * x).sum(), {x})[0].to_vector<double>(), (std::vector<double>{4, 6}));
}

TEST(Gradients, a_cube) {
  const Tensor x = number(2);
  EXPECT_DOUBLE_EQ(slope(x.pow(3), x), 12.0);
}

TEST(Gradients, a_product_with_a_number) {
  const Tensor x = number(-1.5);
  EXPECT_DOUBLE_EQ(slope((x + 2) * 3, x), 3.0);
}

TEST(Gradients, sines) {
  for (const double at : {-2.0, 0.0, 0.7, 3.0}) {
    const Tensor x = number(at);
    EXPECT_NEAR(slope(x * x + x.sin(), x), 2 * at + std::cos(at), 1e-14);
    EXPECT_NEAR(slope((x * x).sin(), x), 2 * at * std::cos(at * at), 1e-13);
  }
}

TEST(Gradients, the_sigmoid) {
  for (const double at : {-4.0, 0.0, 1.25}) {
    const Tensor x = number(at);
    const double s = 1 / (1 + std::exp(-at));
    EXPECT_NEAR(slope(x.sigmoid(), x), s * (1 - s), 1e-15);
  }
}

TEST(Gradients, of_broadcast_operands_are_summed_over_the_broadcast_axes) {
  const Tensor a = Tensor::ones({3, 4}), row = Tensor::ones({4}), column = Tensor::ones({3, 1});
  const auto flows = gradient((a * row + column).sum(), {a, row, column});
  EXPECT_EQ(flows[0].shape(), (Shape{3, 4}));
  EXPECT_EQ(flows[1].to_vector<float>(), std::vector<float>(4, 3));
  EXPECT_EQ(flows[2].shape(), (Shape{3, 1}));
  EXPECT_EQ(flows[2].to_vector<float>(), std::vector<float>(3, 4));
}

TEST(Gradients, follow_the_branch_that_the_host_took) {
  const auto branch = [](const Tensor& x) { return x.item<double>() > 0 ? x * x : x * -5; };
  for (const double at : {3.0, -3.0}) {
    Tensor x = number(at);
    x.requires_grad_();
    branch(x).backward();
    EXPECT_DOUBLE_EQ(x.grad().item<double>(), at > 0 ? 6.0 : -5.0);
  }
}

TEST(Gradients, of_gradients) {
  Tensor x = number(2);
  x.requires_grad_();  // values that are read stay functions of it
  const Tensor first = gradient(x.pow(4), {x})[0];
  const Tensor second = gradient(first, {x})[0];
  EXPECT_DOUBLE_EQ(second.item<double>(), 48.0);
  EXPECT_DOUBLE_EQ(slope(second, x), 48.0);
}

TEST(Gradients, of_a_product_are_the_products_of_the_others) {
  const auto slopes = [](std::initializer_list<double> values, DType dtype = DType::F64) {
    const Tensor x = Tensor::from(values).cast(dtype).realize();
    return gradient(x.prod(), {x})[0].to_vector<double>();
  };
  EXPECT_EQ(slopes({2, 0, 3, 0.5}), (std::vector<double>{0, 3, 0, 0}));
  EXPECT_EQ(slopes({0, 0, 3}), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(slopes({7}), (std::vector<double>{1}));
  const auto large = slopes({1e13, 1e13, 1e13}, DType::F32);
  for (const double slope : large) EXPECT_EQ(slope, static_cast<double>(1e13f * 1e13f));
  const auto of_infinity = slopes({0, INFINITY, 3});
  EXPECT_EQ(of_infinity[0], INFINITY);
  EXPECT_EQ(of_infinity[1], 0);
  EXPECT_TRUE(std::isnan(of_infinity[2]));
}

TEST(Gradients, of_a_product_beside_a_zero_have_gradients) {
  const Tensor x = Tensor::from({2.0, 0.0, 3.0, 0.5});
  const Tensor first = gradient(x.prod(), {x})[0];
  EXPECT_EQ(gradient(first[0], {x})[0].to_vector<double>(), (std::vector<double>{0, 1.5, 0, 0}));
  EXPECT_EQ(gradient(first[1], {x})[0].to_vector<double>(), (std::vector<double>{1.5, 0, 1, 6}));
}

TEST(Gradients, of_products_along_some_axes) {
  for (const int64_t n : {1, 2, 3, 5, 8, 33}) {
    const Tensor x =
        ((Tensor::arange(2 * n * 3).cast(DType::F64) * 7 + 3) % 5 - 2).reshape({2, n, 3}).realize();
    const auto values = x.to_vector<double>();
    const auto slopes = gradient((x.prod({0, 1}) * Tensor::from({1.0, 10.0, 100.0})).sum(), {x})[0];
    const auto found = slopes.to_vector<double>();
    for (size_t at = 0; at < values.size(); ++at) {
      double others = std::pow(10.0, static_cast<double>(at % 3));
      for (size_t i = at % 3; i < values.size(); i += 3)
        if (i != at) others *= values[i];
      EXPECT_DOUBLE_EQ(found[at], others) << n << " " << at;
    }
  }
}

}  // namespace
}  // namespace plugrad
