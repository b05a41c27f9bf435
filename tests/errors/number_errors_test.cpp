// Bad arguments of creation, elementwise functions and reductions; edge cases that are no errors.
#include <functional>

#include "unit/tensor/expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

TEST(NumberErrors, Creation) {
  EXPECT_EQ(error_of([] { Tensor::linspace(0, 1, -1); }), "[linspace] count -1 is negative");
  EXPECT_EQ(error_of([] { Tensor::linspace(0, 1, 3, DType::Bool); }),
            "[linspace] values are numbers, not bool");
  EXPECT_EQ(error_of([] { Tensor::eye(-2); }), "[eye] size -2 is negative");
  EXPECT_EQ(error_of([] { Tensor::eye(3, -3); }), "[eye] size -3 is negative");
  EXPECT_EQ(error_of([] { Tensor::arange(0, 5, 0.5, DType::I32); }),
            "[arange] i32 holds no steps of 0.5 from 0; take a float dtype, or cast");
  EXPECT_EQ(error_of([] { Tensor::arange(300, DType::U8); }),
            "[arange] u8 does not hold 0 to 299; take a wider dtype");
  EXPECT_EQ(error_of([] { Tensor::arange((int64_t{1} << 31) + 2, DType::I32); }),
            "[arange] i32 does not hold 0 to 2147483649; take a wider dtype");
  EXPECT_EQ(error_of([] { Tensor::arange(0, -2, -1, DType::U8); }),
            "[arange] u8 does not hold 0 to -1; take a wider dtype");
  EXPECT_EQ(error_of([] { Tensor::arange(0, NAN); }), "[arange] from 0 to nan by 1 never ends");
  EXPECT_EQ(error_of([] { Tensor::arange(0, Tensor::zeros({2}).realize()); }),
            "[arange] bounds are numbers, not tensors of computed values");
  EXPECT_EQ(error_of([] { Tensor::full({2}, Tensor::zeros({3})); }),
            "[full] the value has shape (3,), not one number");
  EXPECT_EQ(error_of([] { meshgrid({Tensor::zeros({2})}, "yx"); }),
            "[meshgrid] indexing is \"yx\"; known are \"ij\" and \"xy\"");
  EXPECT_EQ(error_of([] { meshgrid({Tensor::zeros({2}), Tensor::zeros({2, 2})}); }),
            "[meshgrid] tensor 1 has shape (2, 2); one axis or none is wanted");
  EXPECT_EQ(error_of([] { meshgrid({Tensor()}); }),
            "[meshgrid] tensor 0 has shape none; one axis or none is wanted");
  EXPECT_TRUE(meshgrid({}).empty());
  EXPECT_EQ(error_of([] { Tensor::zeros({3}).one_hot(4); }),
            "[one_hot] indices are f32, not integers; cast them");
  EXPECT_EQ(error_of([] { Tensor::from({1}).one_hot(-1); }),
            "[one_hot] the number of classes is -1");
  EXPECT_EQ(error_of([] { Tensor::zeros({3}).tril(); }),
            "[tril] shape (3,) has fewer than two axes");
}

TEST(NumberErrors, FunctionsThatCallOthersHaveTheirOwnNames) {
  const Tensor real = Tensor::zeros({2, 3}), whole = Tensor::from({1, 2, 3}), flag = whole > 1,
               four = Tensor::zeros({4}), large = Tensor::from<uint64_t>({1, 2});
  constexpr DType kNone = DType::Void;
  const std::pair<const char*, std::function<void()>> kCalls[] = {
      {"full", [&] { Tensor::full({2}, 1, kNone); }},
      {"zeros", [&] { Tensor::zeros({2}, kNone); }},
      {"ones", [&] { Tensor::ones({2}, kNone); }},
      {"empty", [&] { Tensor::empty({2}, kNone); }},
      {"full_like", [&] { real.full_like(1, kNone); }},
      {"zeros_like", [&] { real.zeros_like(kNone); }},
      {"ones_like", [&] { real.ones_like(kNone); }},
      {"empty_like", [&] { real.empty_like(kNone); }},
      {"arange", [&] { Tensor::arange(2, kNone); }},
      {"eye", [&] { Tensor::eye(2, {}, kNone); }},
      {"linspace", [&] { Tensor::linspace(0, 1, 2, kNone); }},
      {"linspace", [&] { Tensor::linspace(0, 1, int64_t{1} << 62); }},
      {"rand_like", [&] { real.rand_like(kNone); }},
      {"randn_like", [&] { real.randn_like(kNone); }},
      {"uniform", [&] { Tensor::uniform({2}, 0, 1, kNone); }},
      {"normal", [&] { Tensor::normal({2}, 0, 1, kNone); }},
      {"kaiming_uniform", [&] { Tensor::kaiming_uniform({2, 2}, 0, kNone); }},
      {"kaiming_normal", [&] { Tensor::kaiming_normal({2, 2}, 0, kNone); }},
      {"kaiming_uniform", [&] { Tensor::kaiming_uniform({2, 2}, NAN); }},
      {"kaiming_normal", [&] { Tensor::kaiming_normal({2, 2}, NAN); }},
      {"glorot_uniform", [&] { Tensor::glorot_uniform({2, 2}, kNone); }},
      {"scaled_uniform", [&] { Tensor::scaled_uniform({2, 2}, kNone); }},
      {"cast", [&] { real.cast(kNone); }},
      {"sum", [&] { real.sum({}, false, kNone); }},
      {"softmax", [&] { real.softmax(-1, kNone); }},
      {"prod", [&] { real.prod(9, false, DType::Bool); }},
      {"max", [&] { flag.max(9); }},
      {"min", [&] { flag.min(9); }},
      {"min", [&] { whole.min(9); }},
      {"gt", [&] { whole > large; }},
      {"eq", [&] { whole == large; }},
      {"invert", [&] { ~real; }},
      {"clip", [&] { real.clip({}); }},
      {"clip", [&] { real.clip(four); }},
      {"dot", [&] { real.dot(1.0); }},
      {"dot", [&] { real.dot(four); }},
      {"linear", [&] { real.linear(1.0); }},
      {"allclose", [&] { real.allclose(real, -1.0); }},
      {"view", [&] { real.view({7}); }},
      {"shrink_to", [&] { real.shrink_to({1}); }},
      {"shrink_to", [&] { real.shrink_to({1, 9}); }},
      {"max_pool1d_with_places", [&] { max_pool1d_with_places(real, 9); }},
      {"max_pool2d_with_places", [&] { max_pool2d_with_places(real, 9); }},
      {"max_pool3d_with_places", [&] { max_pool3d_with_places(real, 9); }},
  };
  for (const auto& [name, call] : kCalls)
    EXPECT_THAT(error_of(call), testing::StartsWith(std::string("[") + name + "] "));
}

TEST(NumberErrors, Elementwise) {
  const Tensor real = Tensor::zeros({2, 3}), whole = Tensor::from({1, 2, 3}),
               flag = Tensor::from({true, false, true}), four = Tensor::zeros({4});
  EXPECT_EQ(error_of([&] { whole.pow(-2); }),
            "[pow] i32 to -2: integers have no negative powers; cast to a float");
  EXPECT_EQ(error_of([&] { real.clamp({}); }),
            "[clamp] give a lower bound, an upper bound, or both");
  EXPECT_EQ(
      error_of([&] { real.prelu(four); }),
      "[prelu] the weight has shape (4,); one element or the 3 of axis 1 of (2, 3) are wanted");
  EXPECT_EQ(error_of([&] { real.isclose(real, -1.0); }),
            "[isclose] rtol -1 or atol 1e-08 is negative");
  EXPECT_EQ(error_of([&] { real.celu(0.0); }), "[celu] alpha is 0");
  EXPECT_EQ(error_of([&] { real.softplus(0.0); }), "[softplus] beta is 0");
  EXPECT_EQ(error_of([&] { flag % flag; }),
            "[mod] takes numbers, not bool; cast it, or use &, | and ^");
  EXPECT_EQ(error_of([&] { flag.floor_div(flag); }),
            "[floor_div] takes numbers, not bool; cast it, or use &, | and ^");
  EXPECT_EQ(error_of([&] { -flag; }), "[neg] takes numbers, not bool; cast it, or use &, | and ^");
  EXPECT_EQ(error_of([&] { whole << 1.5; }), "[shl] takes integers, not i32 and f32; cast them");
  EXPECT_EQ(error_of([&] { real.masked_fill(real, 1.0); }),
            "[masked_fill] the condition is f32, not bool; compare it first");
  for (const auto& function : std::initializer_list<std::function<void()>>{
           [&] { real.fmod(four); }, [&] { real.div(four, Rounding::Floor); },
           [&] { real.copysign(four); }, [&] { real.logaddexp(four); }, [&] { real.isclose(four); },
           [&] { real.maximum(four); }, [&] { real.lerp(four, 0.5); }, [&] { real.clamp(four); },
           [&] { real % four; }})
    EXPECT_THAT(error_of(function), HasSubstr("do not broadcast"));
  EXPECT_THAT(error_of([&] { real.maximum(Tensor()); }), HasSubstr("a tensor is undefined"));
  EXPECT_THAT(error_of([&] { Tensor().tanh(); }), HasSubstr("a tensor is undefined"));
}

TEST(NumberErrors, InPlaceOperatorsLeaveTheTensorAsItWas) {
  Tensor whole = Tensor::from({5, 6, 7});
  EXPECT_EQ(error_of([&] { whole %= 1.5; }),
            "[assign] a f32 value into a i32 tensor; cast it first");
  EXPECT_EQ(error_of([&] { whole &= 1.5; }), "[and] takes integers or bool, not f32; cast it");
  EXPECT_THAT(error_of([&] { whole |= Tensor::from({1, 2}); }), HasSubstr("do not broadcast"));
  expect_values(whole, {5, 6, 7});
  whole %= 4;
  expect_values(whole, {1, 2, 3});
  whole <<= 3;
  whole |= 1;
  expect_values(whole, {9, 17, 25});
  whole >>= 1;
  whole ^= 5;
  whole &= 13;
  expect_values(whole, {1, 13, 9});
}

TEST(NumberErrors, Reductions) {
  const Tensor x = Tensor::zeros({2, 3}), one = Tensor(1.0);
  EXPECT_EQ(error_of([&] { x.var(2); }),
            "[var] axis 2 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.std_mean({0, 0}); }), "[std_mean] an axis is named twice in (0, 0)");
  EXPECT_EQ(error_of([&] { x.prod(-3); }),
            "[prod] axis -3 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.any(4); }),
            "[any] axis 4 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { x.normalize(std::nan("")); }), "[normalize] the norm's order is NaN");
  EXPECT_EQ(error_of([&] { x.sum({}, false, DType::Void); }), "[sum] void is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { one.sum(1); }),
            "[sum] axis 1 is out of range for 1 axes: allowed are -1 to 0");
  EXPECT_EQ(error_of([] { Tensor::zeros({0}).argmax(); }),
            "[argmax] axis 0 of shape (0,) is empty");
  expect_values(one.sum(0) + one.max(-1) + one.softmax(0), {3});
}

TEST(Literals, ThatADtypeDoesNotHold) {
  const Tensor bytes = Tensor::from<uint8_t>({0, 7, 250}), ints = Tensor::from({705032704});
  expect_values(bytes < 256, {1, 1, 1});
  expect_values(bytes > -1, {1, 1, 1});
  expect_values(bytes == 256, {0, 0, 0});
  expect_values(ints == 5000000000, {0});
  expect_values(bytes + -1, {255, 6, 249});  // sums, products and bits wrap anyway
  EXPECT_THAT(error_of([&] { bytes.maximum(-1); }),
              HasSubstr("[maximum] u8 does not hold the number -1; cast the tensor to a wider"));
  EXPECT_THAT(error_of([&] { ints.maximum(3000000000); }), HasSubstr("i32 does not hold"));
  EXPECT_THAT(error_of([&] { bytes.masked_fill(bytes > 1, 1000); }), HasSubstr("1000"));
  EXPECT_THAT(error_of([] { Tensor::full({2}, 300, DType::U8); }), HasSubstr("[full]"));
  EXPECT_EQ(Tensor(5000000000).dtype(), DType::I64);
  expect_values(Tensor::full({2}, 5000000000), {5e9, 5e9});
}

TEST(Shapes, WithTooManyElements) {
  EXPECT_THAT(error_of([] { Tensor::zeros({int64_t{1} << 32, int64_t{1} << 32}); }),
              HasSubstr("has more than 2^60 elements"));
  EXPECT_EQ(Tensor::zeros({int64_t{1} << 40, 0, int64_t{1} << 40}).numel(), 0);
}

TEST(Rows, OfDifferentLengths) {
  EXPECT_THAT(error_of([] { Tensor::from({{1, 2}, {3}, {4, 5, 6}}); }),
              HasSubstr("[from] a row of 1 values after one of 2"));
}

}  // namespace
}  // namespace plugrad
