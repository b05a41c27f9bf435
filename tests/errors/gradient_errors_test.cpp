// Impossible gradients: the messages, and that no state changed.
#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

Tensor leaf(std::initializer_list<double> values) {
  return Tensor::from(values).requires_grad_();
}

TEST(GradientErrors, ALossOfSeveralElementsNeedsItsGradient) {
  const Tensor x = leaf({1, 2, 3});
  EXPECT_THAT(error_of([&] { (x * x).backward(); }),
              HasSubstr("[backward] the loss has shape (3,), not one element"));
  EXPECT_THAT(error_of([&] { gradient(x * x, {x}); }), HasSubstr("[gradient] the loss has shape"));
  (x * x).backward(Tensor::from({1.0, 10.0, 100.0}));
  expect_values(x.grad(), {2, 40, 600});
  expect_values(gradient(x * x, {x}, Tensor::ones({3}))[0], {2, 4, 6});
}

TEST(GradientErrors, TheGivenGradientHasTheShapeOfTheLoss) {
  const Tensor x = leaf({1, 2, 3});
  EXPECT_THAT(error_of([&] { (x * x).backward(Tensor::ones({2})); }),
              HasSubstr("shape (2,) is given for a loss of shape (3,)"));
  EXPECT_THAT(error_of([&] { (x * x).backward(Tensor::from({1, 2, 3})); }), HasSubstr("i32"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(GradientErrors, TensorsThatAreNotInTheGraph) {
  const Tensor x = leaf({1}), other = leaf({2}), loss = (x * x).sum();
  EXPECT_THAT(error_of([&] { gradient(loss, {x, other}); }),
              HasSubstr("the loss does not depend on target 1, of shape (1,)"));
  EXPECT_THAT(error_of([&] { Tensor::from({1.0}).sum().backward(); }),
              HasSubstr("depends on no tensor that is marked"));
  EXPECT_THAT(error_of([&] { (x.detach() * 2).sum().backward(); }),
              HasSubstr("depends on no tensor that is marked"));
  EXPECT_THAT(error_of([&] { gradient(loss, {Tensor::from({1})}); }),
              HasSubstr("a target is i32; only floats have gradients"));
  EXPECT_FALSE(x.grad().defined());
}

TEST(GradientErrors, AGradientThatIsNotThereIsNamed) {
  const Tensor x = leaf({1, 2});
  EXPECT_EQ(error_of([&] { x.grad().sum(); }),
            "[Tensor] a tensor is undefined; assign it a value first (a grad() has none before "
            "backward())");
}

TEST(GradientErrors, AnotherTensorUnderTheSameNameIsNoLeaf) {
  Tensor w = leaf({3});
  const Tensor other = (w * w).sum();
  w = w - 1;
  EXPECT_THAT(error_of([&] { other.backward(); }),
              HasSubstr("before a marked tensor becomes another (w = w - …)"));
}

TEST(GradientErrors, AReleasedGraph) {
  const Tensor x = leaf({3}), loss = (x * x).sum();
  loss.backward(true);
  loss.backward();
  expect_values(x.grad(), {12});
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("an earlier backward() released"));
  loss.realize();
  EXPECT_THAT(error_of([&] { loss.backward(); }), HasSubstr("released"));
  EXPECT_THAT(error_of([&] { gradient(loss * 2 + x.sum(), {x}); }),
              HasSubstr("[gradient] an earlier backward() released the graph of this loss, or of a "
                        "loss that is a part of it"));
  expect_values(x.grad(), {12});
}

TEST(GradientErrors, OnlyFloatsAreMarked) {
  EXPECT_THAT(error_of([] { Tensor::from({1, 2}).requires_grad_(); }),
              HasSubstr("the tensor is i32; only floats have gradients"));
  const Tensor x = leaf({1, 2});
  EXPECT_THAT(error_of([&] { (x > 0).sum().backward(); }), HasSubstr("the loss is i64"));
}

}  // namespace
}  // namespace plugrad
