// Functions that the documents compose of primitives, against their definitions in double; fused
// and realised step by step.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

std::vector<double> samples(size_t count) {
  std::vector<double> list(count);
  for (size_t i = 0; i < count; ++i) list[i] = 3 * std::sin(0.7 * static_cast<double>(i) + 0.1);
  return list;
}

Tensor stored(const std::vector<double>& values, const Shape& shape) {
  return Tensor::from(values, shape).cast(DType::F32).realize();
}

void expect_near(const Tensor& got, const std::vector<double>& want, double bound = 1e-5) {
  const auto values = got.to_vector<double>();
  ASSERT_EQ(values.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_NEAR(values[i], want[i], bound * (1 + std::fabs(want[i]))) << "element " << i;
}

TEST(Functions, gelu_of_primitives) {
  const auto xs = samples(40);
  const Tensor x = stored(xs, {40});
  const Tensor y = x * 0.5 * ((x / std::sqrt(2.0)).erf() + 1);
  std::vector<double> want;
  for (double v : xs) want.push_back(0.5 * v * (1 + std::erf(v / std::sqrt(2.0))));
  expect_near(y, want);
  EXPECT_EQ((x * 0.5 * ((x / std::sqrt(2.0)).erf() + 1)).schedule().size(), 0u)
      << "the same expression is the same value";
  expect_near(x.gelu(false), want);
}

TEST(Functions, rms_norm_of_primitives) {
  const auto xs = samples(24);
  const Tensor x = stored(xs, {4, 6});
  const Tensor y = x * ((x * x).mean(-1, true) + 1e-6).rsqrt();
  std::vector<double> want;
  for (size_t row = 0; row < 4; ++row) {
    double squares = 0;
    for (size_t i = 0; i < 6; ++i) squares += xs[row * 6 + i] * xs[row * 6 + i];
    for (size_t i = 0; i < 6; ++i) want.push_back(xs[row * 6 + i] / std::sqrt(squares / 6 + 1e-6));
  }
  EXPECT_LE(y.schedule().size(), 2u);
  expect_near(y, want);
}

TEST(Functions, swiglu_of_primitives) {
  const auto xs = samples(20), gates = samples(60), ups = samples(60);
  const Tensor x = stored(xs, {4, 5}), gate = stored(gates, {5, 12}), up = stored(ups, {5, 12});
  const Tensor y = matmul(x, gate).silu() * matmul(x, up);
  std::vector<double> want;
  for (size_t row = 0; row < 4; ++row)
    for (size_t column = 0; column < 12; ++column) {
      double a = 0, b = 0;
      for (size_t k = 0; k < 5; ++k) {
        a += xs[row * 5 + k] * gates[k * 12 + column];
        b += xs[row * 5 + k] * ups[k * 12 + column];
      }
      want.push_back(a / (1 + std::exp(-a)) * b);
    }
  expect_near(y, want);
}

Tensor huber(const Tensor& error, double delta) {
  const Tensor size = error.abs();
  return (size <= delta).where(error * error * 0.5, (size - 0.5 * delta) * delta);
}

TEST(Functions, huber_loss_with_its_derivative) {
  const std::vector<double> errors = {-3, -1.5, -1, -0.25, 0, 0.5, 1, 2, 10};
  const Tensor x = Tensor::from(errors);
  std::vector<double> want, slopes;
  for (double e : errors) {
    want.push_back(std::fabs(e) <= 1 ? 0.5 * e * e : std::fabs(e) - 0.5);
    slopes.push_back(std::fabs(e) <= 1 ? e : e > 0 ? 1 : -1);
  }
  expect_near(huber(x, 1), want, 1e-15);
  expect_near(gradient(huber(x, 1).sum(), {x})[0], slopes, 1e-15);
}

// Kernels when every step of a computation is realised before the next.
size_t run_steps(const std::vector<std::function<Tensor(const Tensor&)>>& steps, Tensor value) {
  size_t kernels = 0;
  for (const auto& step : steps) {
    value = step(value);
    kernels += value.schedule().size();
    value.realize();
  }
  return kernels;
}

TEST(Functions, huber_is_one_kernel_and_one_a_step_when_realised_early) {
  const Tensor x = stored(samples(64), {64}), y = stored(samples(64), {64}) + 0.5;
  EXPECT_EQ(huber(x - y, 1).sum().schedule().size(), 1u);
  const std::vector<std::function<Tensor(const Tensor&)>> steps = {
      [&](const Tensor& v) { return v - y; },
      [](const Tensor& v) { return huber(v, 1); },
      [](const Tensor& v) { return v.sum(); },
  };
  EXPECT_EQ(run_steps(steps, x), 3u);
}

TEST(Functions, add_relu_sum_is_one_kernel_and_three_when_each_is_realised) {
  const Tensor a = stored(samples(64), {64}), b = stored(samples(64), {64});
  EXPECT_EQ((a + b).relu().sum().schedule().size(), 1u);
  const Tensor c = stored(samples(128), {128}).shrink({{64, 128}});
  const std::vector<std::function<Tensor(const Tensor&)>> steps = {
      [&](const Tensor& v) { return v + c; },
      [](const Tensor& v) { return v.relu(); },
      [](const Tensor& v) { return v.sum(); },
  };
  EXPECT_EQ(run_steps(steps, a), 3u);
}

TEST(Functions, matmul_is_expand_multiply_sum) {
  const Tensor a = stored(samples(24), {4, 6}), b = stored(samples(30), {6, 5});
  const Tensor spelled = (a.reshape({4, 6, 1}) * b.reshape({1, 6, 5})).sum(1);
  EXPECT_EQ(spelled.schedule().size(), 1u);
  expect_near(matmul(a, b), spelled.to_vector<double>(), 1e-6);
}

// The rule of docs/tour.md: moving operands is free; a reduction of a reduction is a separate
// kernel.
TEST(Functions, a_matmul_of_moved_operands_and_a_sum_of_it_are_two_kernels) {
  const Tensor a = stored(samples(24), {6, 4}), b = stored(samples(30), {30});
  const Tensor product = matmul(a.permute({1, 0}), b.reshape({6, 5}));
  EXPECT_EQ(product.schedule().size(), 1u);
  EXPECT_EQ(product.sum(1).schedule().size(), 2u);
}

TEST(Functions, xor_is_learnt_by_two_layers) {
  Tensor::manual_seed(4);
  const Tensor x = Tensor::from({0.f, 0.f, 0.f, 1.f, 1.f, 0.f, 1.f, 1.f, 0.f, 1.f,
                                 1.f, 0.f, 0.f, 0.f, 1.f, 1.f, 0.f, 1.f, 1.f, 0.f},
                                {10, 2});
  const Tensor y = Tensor::from({0.f, 1.f, 1.f, 0.f, 1.f, 1.f, 0.f, 0.f, 1.f, 1.f}, {10, 1});
  Tensor w1 = Tensor::uniform({2, 8}, -1, 1).realize(), b1 = Tensor::zeros({8}).contiguous();
  Tensor w2 = Tensor::uniform({8, 1}, -1, 1).realize(), b2 = Tensor::zeros({1}).contiguous();
  std::vector<Tensor> parameters = {w1, b1, w2, b2};
  for (Tensor& p : parameters) p.requires_grad_();
  double loss = 1;
  for (int step = 0; step < 4000 && loss >= 0.001; ++step) {
    for (Tensor& p : parameters) p.zero_grad();
    const Tensor error = matmul((matmul(x, w1) + b1).tanh(), w2) + b2 - y;
    const Tensor total = (error * error).mean();
    total.backward();
    for (Tensor& p : parameters) p -= p.grad() * 0.2;
    Tensor::realize(parameters);
    if (step % 50 == 49) loss = total.item<double>();
  }
  EXPECT_LT(loss, 0.001);
}

}  // namespace
}  // namespace plugrad
