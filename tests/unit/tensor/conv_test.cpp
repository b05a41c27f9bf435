#include <cmath>
#include <tuple>

#include "expect.h"

namespace plugrad {
namespace {

/// conv2d and its gradients as loops; the loss is sum(y * flow).
struct Loops {
  std::vector<double> y, dx, dw;
};

/// Padding is {top, bottom} and {left, right}.
struct Case {
  Shape x, w;
  std::array<int64_t, 2> stride{1, 1}, dilation{1, 1};
  std::pair<int64_t, int64_t> rows{0, 0}, columns{0, 0};
  int64_t groups = 1;
  ConvOptions options() const {
    return {.stride = {stride[0], stride[1]},
            .padding = {rows, columns},
            .dilation = {dilation[0], dilation[1]},
            .groups = groups};
  }
};

double image_value(int64_t i) {
  return std::sin(0.1 + 0.7 * static_cast<double>(i));
}
double weight_value(int64_t i) {
  return std::cos(0.2 + 0.9 * static_cast<double>(i));
}
double flow_value(int64_t i) {
  return std::cos(0.3 + 0.5 * static_cast<double>(i));
}

Shape out_shape(const Case& c) {
  const auto count = [](int64_t size, int64_t pads, int64_t kernel, int64_t stride,
                        int64_t dilation) {
    return (size + pads - dilation * (kernel - 1) - 1) / stride + 1;
  };
  return {c.x[0], c.w[0],
          count(c.x[2], c.rows.first + c.rows.second, c.w[2], c.stride[0], c.dilation[0]),
          count(c.x[3], c.columns.first + c.columns.second, c.w[3], c.stride[1], c.dilation[1])};
}

Loops loops(const Case& c) {
  const Shape y = out_shape(c);
  Loops r{std::vector<double>(static_cast<size_t>(y[0] * y[1] * y[2] * y[3])),
          std::vector<double>(static_cast<size_t>(c.x[0] * c.x[1] * c.x[2] * c.x[3])),
          std::vector<double>(static_cast<size_t>(c.w[0] * c.w[1] * c.w[2] * c.w[3]))};
  const int64_t out_per_group = c.w[0] / c.groups;
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t m = 0; m < y[1]; ++m)
      for (int64_t i = 0; i < y[2]; ++i)
        for (int64_t j = 0; j < y[3]; ++j)
          for (int64_t k = 0; k < c.w[1]; ++k)
            for (int64_t a = 0; a < c.w[2]; ++a)
              for (int64_t b = 0; b < c.w[3]; ++b) {
                const int64_t h = i * c.stride[0] + a * c.dilation[0] - c.rows.first;
                const int64_t w = j * c.stride[1] + b * c.dilation[1] - c.columns.first;
                if (h < 0 || h >= c.x[2] || w < 0 || w >= c.x[3]) continue;
                const int64_t channel = m / out_per_group * c.w[1] + k;
                const int64_t at_x = ((n * c.x[1] + channel) * c.x[2] + h) * c.x[3] + w;
                const int64_t at_w = ((m * c.w[1] + k) * c.w[2] + a) * c.w[3] + b;
                const int64_t at_y = ((n * y[1] + m) * y[2] + i) * y[3] + j;
                r.y[static_cast<size_t>(at_y)] += image_value(at_x) * weight_value(at_w);
                r.dx[static_cast<size_t>(at_x)] += flow_value(at_y) * weight_value(at_w);
                r.dw[static_cast<size_t>(at_w)] += flow_value(at_y) * image_value(at_x);
              }
  return r;
}

Tensor made(const Shape& shape, double (*value)(int64_t)) {
  std::vector<double> list(static_cast<size_t>(Tensor::zeros(shape).numel()));
  for (size_t i = 0; i < list.size(); ++i) list[i] = value(static_cast<int64_t>(i));
  return Tensor::from(list, shape);
}

TEST(Conv2d, ValueAndBothGradientsAreThoseOfTheLoops) {
  const Case cases[] = {
      {{1, 2, 4, 5}, {3, 2, 2, 3}},
      {{2, 1, 6, 6}, {2, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
      {{1, 2, 7, 6}, {2, 2, 3, 2}, {2, 2}},
      {{1, 2, 8, 7}, {4, 1, 3, 3}, {2, 3}, {1, 1}, {1, 1}, {2, 2}, 2},
      {{2, 3, 9, 9}, {3, 1, 2, 3}, {1, 1}, {3, 2}, {0, 0}, {0, 0}, 3},
      {{1, 2, 9, 8}, {2, 2, 3, 3}, {2, 2}, {2, 2}, {2, 1}, {1, 0}},
      {{1, 2, 6, 4}, {3, 2, 2, 2}, {2, 2}},  // adjacent windows
      {{1, 2, 7, 5}, {3, 2, 2, 2}, {2, 2}},  // with a remainder
      {{2, 3, 4, 4}, {5, 3, 1, 1}},          // one element
      {{2, 3, 5, 5}, {2, 3, 1, 1}, {2, 2}},
      {{1, 1, 5, 5}, {1, 1, 5, 5}},          // one window
      {{1, 2, 6, 6}, {2, 2, 2, 2}, {3, 3}},  // gaps between windows
      {{1, 4, 1, 7}, {4, 2, 1, 3}, {1, 1}, {1, 1}, {0, 0}, {1, 1}, 2},
      {{1, 1, 3, 3}, {2, 1, 2, 2}, {2, 2}, {1, 1}, {1, 1}, {1, 1}},  // stride == kernel and padding
      {{1, 2, 9, 8}, {2, 2, 4, 5}, {2, 3}},          // a stride of half the kernel, and less
      {{1, 2, 8, 9}, {2, 2, 3, 1}, {2, 3}, {2, 4}},  // dilated in one axis
      {{1, 2, 6, 7}, {2, 2, 2, 3}, {1, 1}, {1, 1}, {-1, 1}, {0, -2}},  // negative padding
  };
  for (const Case& c : cases) {
    SCOPED_TRACE("x " + to_string(c.x) + " w " + to_string(c.w));
    const Tensor x = made(c.x, image_value).requires_grad_(),
                 w = made(c.w, weight_value).requires_grad_();
    const Tensor y = x.conv2d(w, {}, c.options());
    ASSERT_EQ(y.shape(), out_shape(c));
    const Loops expected = loops(c);
    expect_values(y, expected.y, 1e-12, 1e-10);
    const auto gradients = gradient((y * made(y.shape(), flow_value)).sum(), {x, w});
    expect_values(gradients[0], expected.dx, 1e-12, 1e-10);
    expect_values(gradients[1], expected.dw, 1e-12, 1e-10);
  }
}

TEST(Conv2d, PaddingIsInNoProduct) {
  const double inf = INFINITY;
  const Tensor x = Tensor::ones({1, 1, 3, 3}, DType::F64).requires_grad_();
  const Tensor w = Tensor::from({inf, 0., 0., 0., 0., 0., 0., 0., 0.}, {1, 1, 3, 3});
  const Tensor y = x.conv2d(w, {}, {.padding = 1});
  expect_values(y, {0, 0, 0, 0, inf, inf, 0, inf, inf});
  expect_values(gradient(y.sum(), {x})[0], {inf, inf, 0, inf, inf, 0, 0, 0, 0});
  const Tensor corner = Tensor::from({inf, 0., 0., 0., 0., 0., 0., 0., 0.}, {1, 1, 3, 3});
  const Tensor v = Tensor::ones({1, 1, 3, 3}, DType::F64).requires_grad_();
  const Tensor z = corner.conv2d(v, {}, {.padding = 1});
  expect_values(gradient(z.sum(), {v})[0], {inf, inf, 0, inf, inf, 0, 0, 0, 0});
}

// A stride that does not divide the kernel leaves remainders with fewer elements; neither their
// padding nor the padding of y up to the stride is in a product.
TEST(Conv2d, NothingButTheKernelMeetsAnInfiniteElementOfAStridedOne) {
  const double inf = INFINITY;
  const Tensor x = Tensor::ones({1, 1, 4, 4}, DType::F64).requires_grad_();
  const Tensor w = Tensor::from({inf, 0., 0., 0., 0., 0., 0., 0., 0.}, {1, 1, 3, 3});
  const Tensor y = x.conv2d(w, {}, {.stride = 2, .padding = 1});
  expect_values(y, {0, 0, 0, inf});
  expect_values(gradient(y.sum(), {x})[0], {0, 0, 0, 0, 0, inf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor small = Tensor::ones({1, 1, 2, 2}, DType::F64);
  expect_values(
      conv_transpose2d(small, w, {}, {.stride = 2}),
      {inf, 0, inf, 0, 0, 0, 0, 0, 0, 0, inf, 0, inf, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  const Tensor one = Tensor::from({inf, 0., 0., 0.}, {1, 1, 2, 2});
  expect_values(conv_transpose2d(one, Tensor::ones({1, 1, 3, 3}, DType::F64), {}, {.stride = 2}),
                {inf, inf, inf, 0, 0, inf, inf, inf, 0, 0, inf, inf, inf,
                 0,   0,   0,   0, 0, 0,   0,   0,   0, 0, 0,   0});
}

TEST(Conv2d, BiasIsAddedByChannel) {
  const Tensor y =
      Tensor::ones({1, 1, 2, 2}).conv2d(Tensor::ones({2, 1, 1, 1}), Tensor::from({1.f, -3.f}));
  expect_values(y, {2, 2, 2, 2, -2, -2, -2, -2});
}

TEST(Conv2d, GradientOfAGradient) {
  // y = w² conv x: d/dx sum(y)² … compared with central differences.
  const auto outer = [](const Tensor& x) {
    const Tensor w = made({2, 1, 3, 3}, weight_value);
    const Tensor y = x.conv2d(w, {}, {.stride = 2, .padding = 1});
    return gradient((y * y * y).sum(), {x})[0].square().sum();
  };
  const Tensor x = made({1, 1, 5, 4}, image_value).requires_grad_();
  const std::vector<double> analytic = values(gradient(outer(x), {x})[0]);
  std::vector<double> point = values(x);
  for (size_t i = 0; i < point.size(); ++i) {
    const double at = point[i], step = 1e-5;
    point[i] = at + step;
    const double above = values(outer(Tensor::from(point, {1, 1, 5, 4}).requires_grad_()))[0];
    point[i] = at - step;
    const double below = values(outer(Tensor::from(point, {1, 1, 5, 4}).requires_grad_()))[0];
    point[i] = at;
    EXPECT_NEAR(analytic[i], (above - below) / (2 * step), 1e-5 * std::abs(analytic[i]) + 1e-5)
        << i;
  }
}

TEST(Pool2d, MaximumOfWindows) {
  const Tensor x = counting({1, 1, 4, 4});
  expect_values(x.max_pool2d(2), {5, 7, 13, 15});
  expect_values(x.max_pool2d(3, {.stride = 1}), {10, 11, 14, 15});
  expect_values(x.max_pool2d({2, 3}, {.stride = 2, .padding = {0, 1}}), {5, 7, 13, 15});
  expect_values((-x).max_pool2d(2, {.padding = 1}), {0, -1, -3, -4, -5, -7, -12, -13, -15});
  expect_values(counting({1, 1, 5, 5}).max_pool2d(2, {.ceil_mode = true}),
                {6, 8, 9, 16, 18, 19, 21, 23, 24});
  expect_values(counting({1, 5, 5}).max_pool2d(2, {.stride = 1, .dilation = 3}), {18, 19, 23, 24});
  const Tensor ints = Tensor::from({-5, -7, -6, -9}, {1, 1, 2, 2});
  EXPECT_EQ(ints.max_pool2d(2, {.padding = 1}).dtype(), DType::I32);
  expect_values(ints.max_pool2d(2, {.padding = 1}), {-5, -7, -6, -9});
}

TEST(Pool2d, GradientOfTheMaximumGoesToIt) {
  const Tensor x = Tensor::from({1.f, 5.f, 2.f, 0.f, 3.f, 3.f, 9.f, 4.f}, {1, 1, 2, 4});
  expect_values(gradient(x.max_pool2d(2).sum(), {x})[0], {0, 1, 0, 0, 0, 0, 1, 0});
  expect_values(gradient(x.max_pool2d(2, {.stride = 1}).sum(), {x})[0], {0, 1, 0, 0, 0, 0, 2, 0});
}

TEST(Pool2d, AverageCountsPaddingOrNot) {
  const Tensor x = Tensor::ones({1, 1, 3, 3});
  expect_values(counting({1, 1, 4, 4}).avg_pool2d(2), {2.5, 4.5, 10.5, 12.5});
  expect_values(x.avg_pool2d(2, {.padding = 1}), {0.25, 0.5, 0.5, 1.0});
  expect_values(x.avg_pool2d(2, {.padding = 1, .count_include_pad = false}), {1, 1, 1, 1});
  // Elements beyond the padding that only ceil_mode reaches never count.
  expect_values(x.avg_pool2d(2, {.ceil_mode = true}), {1, 1, 1, 1});
  expect_values(x.avg_pool2d(2, {.padding = {0, 1, 0, 0}, .ceil_mode = true}), {1, 0.5, 1, 0.5});
}

TEST(Conv2d, Errors) {
  const Tensor x = Tensor::zeros({1, 3, 8, 8});
  EXPECT_EQ(error_of([&] { x.conv2d(Tensor::zeros({4, 2, 3, 3})); }),
            "[conv2d] image (1, 3, 8, 8) and weight (4, 2, 3, 3) do not fit 1 groups: the weight "
            "must be (out, 3 / "
            "groups, …) and out a multiple of groups");
  EXPECT_EQ(error_of([&] { x.conv2d(Tensor::zeros({4, 3, 9, 3})); }),
            "[conv2d] windows of (9, 3) with dilation (1, 1) do not fit an image of (1, 3, 8, 8), "
            "padded to (1, 3, 8, 8)");
  EXPECT_THAT(
      error_of([&] { x.conv2d(Tensor::zeros({4, 3, 3, 3}), Tensor::zeros({3})); }),
      testing::HasSubstr("[conv2d] bias (3,) does not have one value for each of 4 channels"));
  EXPECT_THAT(error_of([&] { x.max_pool2d(2, {.stride = 0}); }),
              testing::HasSubstr("[max_pool2d] stride (0, 0) must be 1 or more"));
}

}  // namespace
}  // namespace plugrad
