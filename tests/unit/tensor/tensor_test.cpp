#include <sstream>

#include "expect.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

std::string printed(const Tensor& t) {
  std::ostringstream out;
  out << t;
  return out.str();
}

TEST(Tensor, PrintsWhatItIsAndRunsNothing) {
  const Tensor a = Tensor::from({1.f, 2.f}), y = a + 1.0;
  EXPECT_EQ(printed(y), "Tensor(2) f32 on " + Device::default_device() + ", lazy");
  EXPECT_EQ(printed(Tensor::arange(6, DType::I64).reshape({2, 3})),
            "Tensor(2, 3) i64 on " + Device::default_device() + ", lazy");
  EXPECT_EQ(printed(Tensor()), "Tensor(undefined)");
  EXPECT_FALSE(y.is_realized());
}

TEST(Tensor, ValuesInBracesAndADeviceAreATensorThere) {
  const std::string device = Device::default_device();
  const Tensor sum = Tensor({1, 2, 3}, device) + Tensor({4, 5, 6}, device);
  EXPECT_EQ(sum.dtype(), DType::I32);
  EXPECT_EQ(sum.device(), device);
  expect_values(sum, {5, 7, 9});
  expect_values(Tensor({0.5f}, device), {0.5});
}

TEST(Tensor, CopiesAreTheSameTensor) {
  Tensor a = Tensor::from({1.f, 2.f});
  const Tensor b = a;
  a += 1.0;
  expect_values(b, {2, 3});
  a.assign(7.0);
  expect_values(b, {7, 7});
}

TEST(Tensor, WhatWasRecordedKeepsTheOldValue) {
  Tensor a = Tensor::from({1.f, 2.f});
  const Tensor before = a * 4.0;
  a.assign(Tensor::from({10.f, 20.f}));
  const Tensor after = a * 4.0;
  expect_values(before, {4, 8});
  expect_values(after, {40, 80});
}

TEST(Tensor, InPlaceOperators) {
  Tensor a = Tensor::from({6, 8});
  a += 2;
  a -= Tensor::from({1, 2});
  a *= 3;
  expect_values(a, {21, 24});
  Tensor f = Tensor::from({6.f, 8.f});
  f /= 4;
  expect_values(f, {1.5, 2});
  EXPECT_EQ(a.dtype(), DType::I32);
}

TEST(Tensor, AssignmentChecksShapeAndDtype) {
  Tensor a = Tensor::from({1, 2});
  EXPECT_EQ(error_of([&] { a.assign(Tensor::from({1, 2, 3})); }),
            "[assign] (3,) does not broadcast to (2,)");
  EXPECT_EQ(error_of([&] { a.assign(Tensor::zeros({1, 2})); }),
            "[assign] (1, 2) does not broadcast to (2,)");
  EXPECT_EQ(error_of([&] { a.assign(Tensor::from({1.f, 2.f})); }),
            "[assign] a f32 value into a i32 tensor; cast it first");
  EXPECT_EQ(error_of([&] { a /= 2; }), "[assign] a f32 value into a i32 tensor; cast it first");
  expect_values(a, {1, 2});
}

TEST(Tensor, NumbersAreWeak) {
  const Tensor half = Tensor::ones({2}, DType::F16), byte = Tensor::ones({2}, DType::U8),
               flag = Tensor::from({true, false});
  EXPECT_EQ((half + 1.5).dtype(), DType::F16);
  EXPECT_EQ((2 * half).dtype(), DType::F16);
  EXPECT_EQ((byte + 1).dtype(), DType::U8);
  EXPECT_EQ((byte + 1.0).dtype(), DType::F32);
  EXPECT_EQ((flag + 1).dtype(), DType::I32);
  EXPECT_EQ((byte / 2).dtype(), DType::F32);
  EXPECT_EQ((half < 1).dtype(), DType::Bool);
  EXPECT_EQ(Tensor(1.5).dtype(), DType::F32);
  EXPECT_EQ(Tensor(3).dtype(), DType::I32);
  EXPECT_EQ((Tensor::ones({1}, DType::I64) + half).dtype(), DType::F16);
  EXPECT_EQ(half.minimum(0.5).dtype(), DType::F16);
  EXPECT_EQ(where(flag, byte, 3).dtype(), DType::U8);
  EXPECT_EQ(byte.maximum(0).dtype(), DType::U8);
}

TEST(Tensor, Creation) {
  expect_values(Tensor::full({2, 2}, 3), {3, 3, 3, 3});
  EXPECT_EQ(Tensor::full({2}, 3).dtype(), DType::I32);
  expect_values(Tensor::arange(4), {0, 1, 2, 3});
  EXPECT_EQ(Tensor::arange(4).dtype(), DType::I32);
  expect_values(Tensor::arange(5, 0, -2), {5, 3, 1});
  expect_values(Tensor::arange(0, 1, 0.25), {0, 0.25, 0.5, 0.75});
  EXPECT_EQ(Tensor::arange(3, 1).shape(), Shape{0});
  expect_values(Tensor::linspace(-1, 1, 5), {-1, -0.5, 0, 0.5, 1});
  expect_values(Tensor::linspace(2, 9, 1), {2});
  expect_values(Tensor::eye(2, 3), {1, 0, 0, 0, 1, 0});
  expect_values(Tensor::from({{1, 2}, {3, 4}}), {1, 2, 3, 4});
  expect_values(Tensor::from({{1, 2}, {3, 4}}).ones_like() * 2, {2, 2, 2, 2});
  expect_values(Tensor::from(std::vector<bool>{true, false}), {1, 0});
  const double list[] = {0.5, -0.5};
  EXPECT_EQ(Tensor::from(std::span<const double>(list), {2, 1}).dtype(), DType::F64);
}

TEST(Tensor, CreationErrors) {
  EXPECT_EQ(error_of([] { Tensor::zeros({2, -3}); }), "[zeros] size -3 in (2, -3) is negative");
  EXPECT_EQ(error_of([] { Tensor::from({1, 2, 3}, {2, 2}); }),
            "[from] 3 values for the 4 elements of shape (2, 2)");
  EXPECT_EQ(error_of([] { Tensor::from({{1, 2}, {3}}); }),
            "[from] a row of 1 values after one of 2; rows have one length");
  EXPECT_EQ(error_of([] { Tensor::arange(0, 3, 0); }), "[arange] from 0 to 3 by 0 never ends");
  EXPECT_EQ(error_of([] { Tensor::zeros({2}).cast(DType::Void); }),
            "[cast] void is no dtype of a tensor");
  EXPECT_THAT(error_of([] { Tensor::zeros({2}, DType::F32, "CUDDA"); }),
              testing::HasSubstr("CUDDA"));
  EXPECT_THAT(error_of([] { Tensor().sum(); }), testing::HasSubstr("a tensor is undefined"));
}

TEST(Tensor, ReadsConvertToTheTypeAskedFor) {
  const Tensor a = Tensor::from({1, -2, 300});
  EXPECT_THAT(a.to_vector<int>(), ElementsAre(1, -2, 300));
  EXPECT_THAT(a.to_vector<double>(), ElementsAre(1.0, -2.0, 300.0));
  EXPECT_THAT(a.to_vector<int16_t>(), ElementsAre(1, -2, 300));
  EXPECT_THAT(Tensor::from({0.0, 2.5}).to_vector<bool>(), ElementsAre(false, true));
  EXPECT_EQ(Tensor::from({2.75}).item<float>(), 2.75f);
  EXPECT_EQ(Tensor::from({2.75f}).item<int>(), 2);
  EXPECT_EQ(Tensor(7).item<int64_t>(), 7);
  EXPECT_EQ(Tensor::full({1, 1}, 1.5, DType::BF16).item<double>(), 1.5);
  std::vector<float> out(2);
  Tensor::from({4.f, 5.f}).copy_to(std::span(out));
  EXPECT_THAT(out, ElementsAre(4.f, 5.f));
  EXPECT_EQ(error_of([] { Tensor::from({4.f, 5.f}).item<float>(); }),
            "[item] a tensor of shape (2,) has 2 elements; only one element is an item");
  EXPECT_EQ(error_of([&] { Tensor::from({1.f}).copy_to(std::span(out)); }),
            "[copy_to] 2 elements of space for the 1 of (1,)");
}

TEST(Backward, FillsAndAddsUpUntilZeroGrad) {
  Tensor w = Tensor::from({1.f, 2.f}).requires_grad_(), b = Tensor::zeros({2}).requires_grad_();
  const Tensor x = Tensor::from({3.f, 5.f});
  EXPECT_FALSE(w.grad().defined());
  (w * x + b).sum().backward();
  expect_values(w.grad(), {3, 5});
  expect_values(b.grad(), {1, 1});
  (w * w).sum().backward();
  expect_values(w.grad(), {5, 9});
  w.zero_grad();
  EXPECT_FALSE(w.grad().defined());
  EXPECT_FALSE(x.grad().defined());
}

TEST(Backward, LeavesOfEqualValueDoNotShareAGradient) {
  Tensor a = Tensor::zeros({2}).requires_grad_(), b = Tensor::zeros({2}).requires_grad_();
  (a * 2.0 + b * 3.0).sum().backward();
  expect_values(a.grad(), {2, 2});
  expect_values(b.grad(), {3, 3});
  a.assign(b);  // also not after the assignment
  b.assign(b);
  a.zero_grad();
  b.zero_grad();
  (a * 2.0 + b * 3.0).sum().backward();
  expect_values(a.grad(), {2, 2});
  expect_values(b.grad(), {3, 3});
}

TEST(Backward, StopsAtDetachAndAtAssignedLeaves) {
  Tensor w = Tensor::from({2.f}).requires_grad_();
  (w.detach() * w).sum().backward();
  expect_values(w.grad(), {2});
  const Tensor old = w * 1.0;
  w.zero_grad();
  w -= 0.5 * old;  // a step; the new value is a leaf again
  (w * w).sum().backward();
  expect_values(w, {1});
  expect_values(w.grad(), {2});
}

TEST(Backward, StopsAtWhatIsAssignedWithoutGradients) {
  const auto gradient_of = [](const Shape& shape, DType dtype, auto read) {
    const Tensor w = Tensor::from({1.f, 2.f}).requires_grad_();
    Tensor b = Tensor::zeros(shape, dtype);
    {
      const NoGradScope scope;
      b.assign(w);
    }
    read(b);
    (b.cast(DType::F32) * w).sum().backward();
    return w.grad();
  };
  const auto nothing = [](const Tensor&) {};
  expect_values(gradient_of({2}, DType::F32, nothing), {1, 2});
  expect_values(gradient_of({2}, DType::F64, nothing), {1, 2});
  expect_values(gradient_of({2, 2}, DType::F32, nothing), {2, 4});
  expect_values(gradient_of({2}, DType::F32, [](const Tensor& b) { b.realize(); }), {1, 2});
}

TEST(Backward, Errors) {
  Tensor w = Tensor::from({1.f, 2.f}).requires_grad_();
  EXPECT_EQ(error_of([&] { (w * w).backward(); }),
            "[backward] the loss has shape (2,), not one element; reduce it with mean() or sum(), "
            "or give "
            "the gradient of each element");
  EXPECT_EQ(error_of([&] { gradient(Tensor::arange(3).sum(), {w}); }),
            "[gradient] the loss is i64; only floats have gradients");
  EXPECT_EQ(error_of([&] { gradient(w.sum(), {Tensor::arange(3)}); }),
            "[gradient] a target is i32; only floats have gradients");
  EXPECT_EQ(error_of([] { Tensor::arange(3).requires_grad_(); }),
            "[requires_grad_] the tensor is i32; only floats have gradients");
  EXPECT_EQ(error_of([&] { w.set_grad(Tensor::zeros({3})); }),
            "[set_grad] (3,) is not the shape (2,) of the tensor");
}

TEST(GradientOf, WhatTheLossDoesNotDependOnIsAnError) {
  const Tensor a = Tensor::from({1.f, 2.f}), b = Tensor::from({{1.f}, {2.f}});
  EXPECT_EQ(error_of([&] { gradient(a.sum(), {a, b}); }),
            "[gradient] the loss does not depend on target 1, of shape (2, 1). A value that was "
            "realised or read (realize(), item(), to_vector(), printing) has forgotten how it was "
            "computed: call gradient() before that, or requires_grad_() on the target before the "
            "loss is computed. Through detach(), and a UserKernel without `backward`, no gradient "
            "flows");
  EXPECT_THAT(error_of([&] { gradient(a.detach().sum(), {a}); }),
              testing::HasSubstr("does not depend on target 0"));
}

TEST(GradientOf, AGradientOfAGradient) {
  Tensor x = Tensor::from({0.5, -1.5}).requires_grad_();
  const Tensor first = gradient(x.exp().sum(), {x})[0],
               second = gradient(first.square().sum(), {x})[0];
  expect_values(second, {2 * std::exp(1.0), 2 * std::exp(-3.0)}, 1e-9, 1e-9);
}

TEST(GradientOf, TheVarianceAndItsDerivatives) {
  // d var / dx = 2 (x - mean) / n, and once more 2 (v - mean of v) / n along v.
  const Tensor x = Tensor::from<double>({1, 2, 6}).requires_grad_();
  const Tensor v = Tensor::from<double>({1, 0, 2});
  const Tensor first = gradient(x.var({}, false, 0), {x})[0];
  expect_values(first, {-4.0 / 3, -2.0 / 3, 2});
  expect_values(gradient((first * v).sum(), {x})[0], {0, -2.0 / 3, 2.0 / 3});
  expect_values(gradient(x.var_mean({}, false, 0).second, {x})[0], {1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST(Random, IsWhatTheDescriptionSays) {
  // From an independent Python implementation of threefry-2x32 and the rules in
  // docs/tensor-guide.md.
  Tensor::manual_seed(42);
  expect_values(Tensor::rand({5}),
                {0.38104248046875, 0.009775400161743164, 0.1128007173538208, 0.1176995038986206,
                 0.505361795425415},
                0, 0);
  expect_values(Tensor::rand({3}), {0.8708788156509399, 0.5977052450180054, 0.6344926357269287}, 0,
                0);
  Tensor::manual_seed(7);
  expect_values(Tensor::rand({5}, DType::F16),
                {0.0517578125, 0.43359375, 0.9326171875, 0.046875, 0.373046875}, 0, 0);
  Tensor::manual_seed(7);
  expect_values(Tensor::rand({5}, DType::BF16),
                {0.046875, 0.4296875, 0.9296875, 0.046875, 0.3671875}, 0, 0);
  Tensor::manual_seed(7);
  expect_values(Tensor::rand({3}, DType::F64),
                {0.03304022715205024, 0.32462644209553737, 0.8199026589312675}, 0, 0);
  Tensor::manual_seed(42);
  expect_values(Tensor::randn({4}),
                {0.6225841250536464, 0.1705761450138729, 0.8297092594460318, 0.30674063931270146},
                2e-6);
}

TEST(Random, ComesInItsRangesAndDiffersFromCallToCall) {
  Tensor::manual_seed(1);
  const std::vector<double> a = values(Tensor::uniform({1000}, -2, 3)),
                            b = values(Tensor::uniform({1000}, -2, 3));
  EXPECT_NE(a, b);
  EXPECT_THAT(a, testing::Each(testing::AllOf(testing::Ge(-2.0), testing::Lt(3.0))));
  double mean = 0;
  for (double v : a) mean += v / 1000;
  EXPECT_NEAR(mean, 0.5, 0.15);
  const std::vector<double> dice = values(Tensor::randint({600}, -1, 2));
  for (double face : {-1.0, 0.0, 1.0})
    EXPECT_THAT(std::ranges::count(dice, face), testing::AllOf(testing::Ge(140), testing::Le(260)));
  const std::vector<double> normal = values(Tensor::randn({2000}));
  double square = 0;
  for (double v : normal) square += v * v / 2000;
  EXPECT_NEAR(square, 1.0, 0.15);
  const double bound = std::sqrt(6.0 / ((1 + 1e-4) * 50));
  EXPECT_THAT(values(Tensor::kaiming_uniform({4, 50})),
              testing::Each(testing::AllOf(testing::Ge(-bound), testing::Le(bound))));
}

TEST(Random, DropoutKeepsTheMean) {
  Tensor::manual_seed(3);
  const Tensor x = Tensor::ones({1000});
  const std::vector<double> y = values(x.dropout(0.25));
  EXPECT_THAT(y, testing::Each(testing::AnyOf(0.0, testing::DoubleNear(1 / 0.75, 1e-6))));
  EXPECT_THAT(std::ranges::count(y, 0.0), testing::AllOf(testing::Ge(190), testing::Le(310)));
  expect_values(x.dropout(0.5, false), std::vector<double>(1000, 1.0));
  EXPECT_EQ(error_of([&] { x.dropout(1.5); }), "[dropout] the probability is 1.5, not in [0, 1]");
}

}  // namespace
}  // namespace plugrad
