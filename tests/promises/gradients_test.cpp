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

}  // namespace
}  // namespace plugrad
