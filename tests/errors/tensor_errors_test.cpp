// Bad arguments of tensor functions: kind, message, and that every tensor is unchanged.
#include "tensor/handles.h"
#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(TensorErrors, ShapesThatDoNotBroadcast) {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4});
  EXPECT_EQ(error_of([&] { a + b; }),
            "[add] shapes (2, 3) and (4,) do not broadcast: sizes must be equal or 1, counted from "
            "the last axis");
  EXPECT_EQ(error_of([&] { where(a < 0, a, b); }),
            "[where] shapes (2, 3) and (2, 3) and (4,) do not broadcast: sizes must be equal or 1, "
            "counted from the last axis");
  EXPECT_EQ((a + Tensor::zeros({5, 1, 1})).shape(), (Shape{5, 2, 3}));
  EXPECT_EQ((Tensor::zeros({0, 3}) + a[0]).shape(), (Shape{0, 3}));
  EXPECT_EQ((Tensor::zeros({1}) + Tensor::zeros({0})).shape(), Shape{0});
}

TEST(TensorErrors, DtypesThatAFunctionDoesNotTake) {
  const Tensor flag = Tensor::from({true}), real = Tensor::from({1.f});
  EXPECT_EQ(error_of([&] { flag - flag; }),
            "[sub] takes numbers, not bool; cast it, or use &, | and ^");
  EXPECT_EQ(error_of([&] { real & real; }), "[and] takes integers or bool, not f32; cast it");
  EXPECT_EQ(error_of([&] { real << 1; }), "[shl] takes integers, not f32 and i32; cast them");
  EXPECT_EQ(error_of([&] { where(real, 1, 2); }),
            "[where] the condition is f32, not bool; compare it first");
  EXPECT_EQ(error_of([&] { real.bitcast(DType::I64); }),
            "[bitcast] the last axis of (1,) does not divide into i64 of 2 f32 each");
  EXPECT_EQ(error_of([&] { real.index_select(0, real); }),
            "[index_select] indices are f32, not integers; cast them");
  EXPECT_EQ(error_of([&] { Tensor::rand({2}, DType::I32); }),
            "[rand] draws f16, bf16, f32 or f64, not i32; use randint, or cast");
}

TEST(TensorErrors, ReshapeToAnotherSize) {
  const Tensor a = Tensor::zeros({2, 6});
  EXPECT_EQ(a.reshape({3, -1}).shape(), (Shape{3, 4}));
  EXPECT_EQ(error_of([&] { a.reshape({5, 2}); }),
            "[reshape] (2, 6) has 12 elements, (5, 2) has 10");
  EXPECT_EQ(error_of([&] { a.reshape({5, -1}); }),
            "[reshape] (5, -1) does not fit the 12 elements of (2, 6)");
  EXPECT_EQ(error_of([&] { a.reshape({-1, -1}); }), "[reshape] (-1, -1) has more than one -1");
  EXPECT_EQ(error_of([&] { a.reshape({-2, 6}); }), "[reshape] size -2 in (-2, 6) is negative");
}

TEST(TensorErrors, AxesOutOfRangeOrNamedTwice) {
  const Tensor a = Tensor::zeros({2, 4});
  EXPECT_EQ(error_of([&] { a.sum(3); }),
            "[sum] axis 3 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { a.max({0, -2}); }), "[max] an axis is named twice in (0, -2)");
  EXPECT_EQ(error_of([&] { a.permute({0, 0}); }), "[permute] an axis is named twice in (0, 0)");
  EXPECT_EQ(error_of([&] { a.permute({0}); }),
            "[permute] 1 entries given for shape (2, 4) of 2 axes");
  EXPECT_EQ(error_of([&] { a.softmax(2); }),
            "[softmax] axis 2 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { a.expand({3, 4}); }),
            "[expand] (2, 4) does not expand to (3, 4): only sizes of 1 repeat");
  EXPECT_EQ(error_of([&] { a.shrink({{0, 3}, {0, 4}}); }),
            "[shrink] (0, 3) is no part of axis 0 of (2, 4)");
  EXPECT_THAT(error_of([&] { a.unsqueeze(4); }), HasSubstr("[unsqueeze] axis 4 is out of range"));
}

TEST(TensorErrors, JoiningWhatDoesNotFit) {
  const Tensor a = Tensor::zeros({2, 4}), b = Tensor::zeros({3, 4});
  EXPECT_EQ(error_of([&] { cat({a, b}, 1); }),
            "[cat] (2, 4) and (3, 4) may differ along axis 1 alone");
  EXPECT_EQ(error_of([&] { stack({a, b}); }), "[stack] shapes (2, 4) and (3, 4) differ");
  EXPECT_EQ(error_of([] { cat({}); }), "[cat] no tensors are given");
  EXPECT_EQ(error_of([&] { a.split({1, 2}, 1); }),
            "[split] sizes (1, 2) add up to 3, axis 1 of (2, 4) has 4");
}

TEST(TensorErrors, MatmulMismatchSaysWhatToDo) {
  const Tensor x = Tensor::zeros({32, 784}), w = Tensor::zeros({10, 784});
  EXPECT_EQ(
      error_of([&] { matmul(x, w); }),
      "[matmul] inner sizes differ: (32, 784) x (10, 784); did you mean matmul(x, w.transpose())?");
  EXPECT_EQ(
      error_of([&] { matmul(x.transpose(), Tensor::zeros({784, 5})); }),
      "[matmul] inner sizes differ: (784, 32) x (784, 5); did you mean matmul(x.transpose(), w)?");
  EXPECT_EQ(error_of([&] { matmul(x, Tensor::zeros({3})); }),
            "[matmul] inner sizes differ: (32, 784) x (3,); the last axis of the left and the "
            "second last of the right must agree");
  EXPECT_EQ(error_of([&] { matmul(x, 2.0); }),
            "[matmul] (32, 784) x (): numbers have no inner axis; use *");
  EXPECT_THAT(error_of([] {
                matmul(Tensor::zeros({2, 1, 3}), Tensor::zeros({3, 3, 4})) +
                    matmul(Tensor::zeros({2, 1, 3}), Tensor::zeros({3, 3, 4}));
              }),
              HasSubstr("do not broadcast"));
}

TEST(TensorErrors, LabelsThatDoNotFit) {
  const Tensor logits = Tensor::zeros({4, 10});
  EXPECT_EQ(error_of([&] { sparse_categorical_crossentropy(logits, Tensor::zeros({4})); }),
            "[sparse_categorical_crossentropy] labels are f32, not integers; cast them");
  EXPECT_EQ(
      error_of([&] { sparse_categorical_crossentropy(logits, Tensor::arange(5)); }),
      "[sparse_categorical_crossentropy] labels (5,) do not fit logits (4, 10): expected (4,)");
  EXPECT_EQ(error_of([&] { mse_loss(logits, Tensor::zeros({10})); }),
            "[mse_loss] shapes (4, 10) and (10,) differ");
}

TEST(TensorErrors, MixedDevices) {
  Tensor here = Tensor::from({1.f}), there = Tensor::from({1.f}).to("CPU");
  EXPECT_EQ(tensor::state_of(here.to(here.device())), tensor::state_of(here));
  EXPECT_THAT(error_of([&] { here + there; }),
              HasSubstr("[add] tensors are on " + here.device() + " and on " + there.device()));
  EXPECT_EQ((there + 1.0).device(), there.device());
  EXPECT_EQ((Tensor::ones({1}) + there).device(), there.device());
}

TEST(TensorErrors, LeaveTensorsAsTheyWere) {
  Tensor a = Tensor::from({1.f, 2.f}), copy = a;
  a += 1;
  error_of([&] { a += Tensor::zeros({3}); });
  error_of([&] { a.assign(Tensor::zeros({2, 2})); });
  error_of([&] { a.backward(); });
  error_of([&] { a.matmul(Tensor::zeros({3, 2})); });
  expect_values(copy, {2, 3});
  EXPECT_FALSE(a.grad().defined());
}

}  // namespace
}  // namespace plugrad
