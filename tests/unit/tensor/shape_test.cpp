// Movement, indexing and reductions: shapes, edge cases, errors. Values of ordinary cases are in vectors.h.
#include "expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(Broadcast, SizesMustAgreeOrBe1) {
  const Tensor a = Tensor::zeros({2, 3}), b = Tensor::zeros({4});
  EXPECT_EQ(error_of([&] { a + b; }),
            "[add] shapes (2, 3) and (4,) do not broadcast: sizes must be equal or 1, counted from the last axis");
  EXPECT_EQ(error_of([&] { where(a < 0, a, b); }),
            "[where] shapes (2, 3) and (2, 3) and (4,) do not broadcast: sizes must be equal or 1, counted from the last axis");
  EXPECT_EQ((a + Tensor::zeros({5, 1, 1})).shape(), (Shape{5, 2, 3}));
  EXPECT_EQ((Tensor::zeros({0, 3}) + a[0]).shape(), (Shape{0, 3}));
  EXPECT_EQ((Tensor::zeros({1}) + Tensor::zeros({0})).shape(), Shape{0});
}

TEST(Dtypes, ThatAFunctionDoesNotTake) {
  const Tensor flag = Tensor::from({true}), real = Tensor::from({1.f});
  EXPECT_EQ(error_of([&] { flag - flag; }), "[sub] takes numbers, not bool; cast it, or use &, | and ^");
  EXPECT_EQ(error_of([&] { real & real; }), "[and] takes integers or bool, not f32; cast it");
  EXPECT_EQ(error_of([&] { real << 1; }), "[shl] takes integers, not f32 and i32; cast them");
  EXPECT_EQ(error_of([&] { where(real, 1, 2); }), "[where] the condition is f32, not bool; compare it first");
  EXPECT_EQ(error_of([&] { real.bitcast(DType::I64); }), "[bitcast] f32 and i64 have elements of different size");
  EXPECT_EQ(error_of([&] { real.index_select(0, real); }), "[index_select] places are f32, not integers; cast them");
  EXPECT_EQ(error_of([&] { Tensor::rand({2}, DType::I32); }),
            "[rand] draws f16, bf16, f32 or f64, not i32; use randint, or cast");
}

TEST(Integers, DivideAndShiftAsTheirFunctionsSay) {
  const Tensor a = Tensor::from({7, -7, 7, -7, 5}), b = Tensor::from({2, 2, -2, -2, 0});
  expect_values(a.floor_div(b), {3, -4, -4, 3, 0});
  expect_values(a.trunc_div(b), {3, -3, -3, 3, 0});
  expect_values(a % b, {1, 1, -1, -1, 5});
  expect_values(a.fmod(b), {1, -1, 1, -1, 5});
  expect_values(Tensor::from({-8, 8}) >> 1, {-4, 4});
  expect_values(Tensor::from({3}) << 2, {12});
  expect_values(~Tensor::from({5, 0}), {-6, -1});
  expect_values(Tensor::from({INT32_MIN, 3}).minimum(2), {INT32_MIN, 2});
  expect_values(Tensor::from({3, -2, 2}).pow(Tensor::from({4, 3, -1})), {81, -8, 0});
  expect_values(Tensor::from({3}).pow(5), {243});
  expect_values(Tensor::from({true, false}) + Tensor::from({true, true}), {1, 1});
  expect_values(Tensor::from({5.5, -5.5}) % 2.0, {1.5, 0.5});
}

TEST(Floats, AtTheirEdges) {
  const Tensor x = Tensor::from({-kInf, -0.0, 0.0, kInf, kNaN, -1.5, 2.5, 3.5});
  expect_values(x.round(), {-kInf, 0, 0, kInf, kNaN, -2, 2, 4});
  expect_values(x.floor(), {-kInf, 0, 0, kInf, kNaN, -2, 2, 3});
  expect_values(x.ceil(), {-kInf, 0, 0, kInf, kNaN, -1, 3, 4});
  expect_values(x.relu(), {0, 0, 0, kInf, kNaN, 0, 2.5, 3.5});
  expect_values(x.abs(), {kInf, 0, 0, kInf, kNaN, 1.5, 2.5, 3.5});
  expect_values(x.sign(), {-1, 0, 0, 1, kNaN, -1, 1, 1});
  expect_values(x.isnan(), {0, 0, 0, 0, 1, 0, 0, 0});
  expect_values(x.isinf(), {1, 0, 0, 1, 0, 0, 0, 0});
  expect_values(x.isfinite(), {0, 1, 1, 0, 0, 1, 1, 1});
  expect_values(x.maximum(1.0), {1, 1, 1, kInf, kNaN, 1, 2.5, 3.5});
  expect_values(x.clamp(-1.0, 3.0), {-1, 0, 0, 3, kNaN, -1, 2.5, 3});
  expect_values(x <= 0.0, {1, 1, 1, 0, 0, 1, 0, 0});
  expect_values(x >= 0.0, {0, 1, 1, 1, 0, 0, 1, 1});
  EXPECT_FALSE(std::signbit(values(x.abs())[1]));
}

TEST(Power, AtItsEdges) {
  Tensor x = Tensor::from({0.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, kNaN, kInf, -kInf});
  const Tensor y = Tensor::from({0.0, -1.5, 2.5, 3.0, -2.0, 0.5, kInf, 0.0, 0.0, 3.0});
  x.requires_grad_();
  expect_values(x.pow(y), {1, kInf, 0, -8, 0.25, kNaN, 1, 1, 1, -kInf});
  expect_values(gradient(x.pow(y).sum(), {x})[0][Slice(2, 5)], {0, 12, 0.25});
}

TEST(Reshape, Errors) {
  const Tensor a = Tensor::zeros({2, 6});
  EXPECT_EQ(a.reshape({3, -1}).shape(), (Shape{3, 4}));
  EXPECT_EQ(error_of([&] { a.reshape({5, 2}); }), "[reshape] (2, 6) has 12 elements, (5, 2) has 10");
  EXPECT_EQ(error_of([&] { a.reshape({5, -1}); }), "[reshape] (5, -1) does not fit the 12 elements of (2, 6)");
  EXPECT_EQ(error_of([&] { a.reshape({-1, -1}); }), "[reshape] (-1, -1) has more than one -1");
  EXPECT_EQ(error_of([&] { a.reshape({-2, 6}); }), "[reshape] size -2 in (-2, 6) is negative");
}

TEST(Axes, OutOfRangeOrTwice) {
  const Tensor a = Tensor::zeros({2, 4});
  EXPECT_EQ(error_of([&] { a.sum(3); }), "[sum] axis 3 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { a.max({0, -2}); }), "[max] an axis is named twice in (0, -2)");
  EXPECT_EQ(error_of([&] { a.permute({0, 0}); }), "[permute] an axis is named twice in (0, 0)");
  EXPECT_EQ(error_of([&] { a.permute({0}); }), "[permute] 1 entries given for shape (2, 4) of 2 axes");
  EXPECT_EQ(error_of([&] { a.softmax(2); }), "[max] axis 2 is out of range for 2 axes: allowed are -2 to 1");
  EXPECT_EQ(error_of([&] { a.expand({3, 4}); }), "[expand] (2, 4) does not expand to (3, 4): only sizes of 1 repeat");
  EXPECT_EQ(error_of([&] { a.shrink({{0, 3}, {0, 4}}); }), "[shrink] (0, 3) is no part of axis 0 of (2, 4)");
  EXPECT_THAT(error_of([&] { a.unsqueeze(4); }), HasSubstr("[unsqueeze] axis 4 is out of range"));
}

TEST(Joining, Errors) {
  const Tensor a = Tensor::zeros({2, 4}), b = Tensor::zeros({3, 4});
  EXPECT_EQ(error_of([&] { cat({a, b}, 1); }), "[cat] (2, 4) and (3, 4) may differ along axis 1 alone");
  EXPECT_EQ(error_of([&] { stack({a, b}); }), "[stack] shapes (2, 4) and (3, 4) differ");
  EXPECT_EQ(error_of([] { cat({}); }), "[cat] no tensors are given");
  EXPECT_EQ(error_of([&] { a.split({1, 2}, 1); }), "[split] sizes (1, 2) add up to 3, axis 1 of (2, 4) has 4");
}

TEST(Joining, KeepsSignsAndEmptyParts) {
  const Tensor a = Tensor::from({-0.0, 1.0}), none = Tensor::zeros({0}, DType::F64);
  const std::vector<double> joined = values(cat({none, a, none, a}));
  EXPECT_EQ(joined, (std::vector<double>{0, 1, 0, 1}));
  EXPECT_TRUE(std::signbit(joined[0]));
  EXPECT_EQ(cat({none, none}).shape(), Shape{0});
  EXPECT_EQ(Tensor::arange(7).chunk(3).size(), 3u);
  EXPECT_EQ(Tensor::arange(7).chunk(3)[2].shape(), Shape{1});
}

TEST(Index, NumbersSlicesAndAxes) {
  const Tensor a = counting({3, 4});
  expect_values(a[1], {4, 5, 6, 7});
  expect_values(a[{-1, 2}], {10});
  expect_values(a[{Slice(1, 3), Slice({}, {}, 3)}], {4, 7, 8, 11});
  expect_values(a[{kEllipsis, 0}], {0, 4, 8});
  EXPECT_EQ((a[{kNewAxis, Slice(), kNewAxis, 1}].shape()), (Shape{1, 3, 1}));
  EXPECT_EQ(a[Slice(5, 9)].shape(), (Shape{0, 4}));
  expect_values(a[{0, Slice({}, {}, -1)}], {3, 2, 1, 0});
  expect_values(a[{0, Slice(-2, -10, -2)}], {2, 0});
  expect_values(a[{Tensor::from({2, 0}), 1}], {9, 1});
  EXPECT_EQ(error_of([&] { a[3]; }), "[index] 3 is out of range for axis 0 of (3, 4)");
  EXPECT_EQ(error_of([&] { a[{0, 0, 0}]; }), "[index] 3 indices for shape (3, 4) of 2 axes");
  EXPECT_EQ(error_of([&] { a[{Slice(0, 2, 0)}]; }), "[slice] the step is 0");
}

TEST(Index, PlacesOutsideRead0) {
  const Tensor a = Tensor::from({5.f, 6.f, 7.f});
  expect_values(a.index_select(0, Tensor::from({-1, 3, 0, -4})), {7, 0, 5, 0});
  expect_values(a.gather(0, Tensor::from({1, 9})), {6, 0});
  expect_values(Tensor::from({1, 3, -1}).one_hot(3), {0, 1, 0, 0, 0, 0, 0, 0, 0});
}

TEST(Reductions, DtypesWiden) {
  const Tensor byte = Tensor::full({3}, 100, DType::I8), flag = Tensor::from({true, true, false});
  expect_values(byte.sum(), {300});
  EXPECT_EQ(byte.sum().dtype(), DType::I32);
  expect_values(flag.sum(), {2});
  EXPECT_EQ(Tensor::ones({2}, DType::U8).sum().dtype(), DType::U32);
  EXPECT_EQ(Tensor::ones({2}, DType::F16).sum().dtype(), DType::F16);
  EXPECT_EQ(byte.mean().dtype(), DType::F32);
  expect_values(Tensor::from({1, 2}).mean(), {1.5});
  expect_values(Tensor::full({4096}, 32, DType::F16).mean(), {32});  // the sum is beyond f16
  expect_values(Tensor::full({2, 300}, 100, DType::I8).matmul(Tensor::full({300, 1}, 100, DType::I8)), {3e6, 3e6});
}

TEST(Reductions, OfNothing) {
  const Tensor none = Tensor::zeros({0, 3});
  expect_values(none.sum(0), {0, 0, 0});
  expect_values(none.prod(0), {1, 1, 1});
  expect_values(none.max(0), {-kInf, -kInf, -kInf});
  expect_values(none.min(0), {kInf, kInf, kInf});
  expect_values(none.cast(DType::I32).max(0), {INT32_MIN, INT32_MIN, INT32_MIN});
  expect_values(none.any(0), {0, 0, 0});
  expect_values(none.all(0), {1, 1, 1});
  EXPECT_EQ(none.sum(1).shape(), Shape{0});
  EXPECT_EQ(values(none.softmax(1)).size(), 0u);
  expect_values(Tensor::zeros({2, 0}).matmul(Tensor::zeros({0, 2})), {0, 0, 0, 0});
  EXPECT_EQ(error_of([&] { none.argmax(0); }), "[argmax] axis 0 of shape (0, 3) is empty");
  const Tensor scalar = 3.0;
  expect_values(scalar.sum(), {3});
}

TEST(Reductions, FindTheFirstOfEqualsAndNaN) {
  const Tensor a = Tensor::from({{1., 5., 5.}, {kNaN, 7., kNaN}, {-1., -1., -2.}});
  expect_values(a.argmax(1), {1, 0, 0});
  expect_values(a.argmin(1), {0, 0, 2});
  expect_values(a.max(1), {5, kNaN, -1});
  expect_values(a.argmax(), {3});
  EXPECT_EQ(a.argmax(1, true).shape(), (Shape{3, 1}));
  expect_values(Tensor::from({3, INT32_MIN, INT32_MIN}).argmin(0), {1});
  EXPECT_EQ(a.argmax(1).dtype(), DType::I32);
}

TEST(Reductions, AtInfinity) {
  const Tensor a = Tensor::from({{kInf, 1.}, {-kInf, -kInf}});
  expect_values(a.logsumexp(1), {kInf, -kInf});
  expect_values(Tensor::from({1000., 1000.}).logsumexp(), {1000 + std::log(2.0)}, 1e-9);
  expect_values(Tensor::from({1000., -1000.}).softmax(0), {1, 0});
  const Tensor same = Tensor::from({2., 2.});
  expect_values(gradient(same.std(), {same})[0], {0, 0});
}

TEST(Matmul, ErrorsSayWhatToDo) {
  const Tensor x = Tensor::zeros({32, 784}), w = Tensor::zeros({10, 784});
  EXPECT_EQ(error_of([&] { matmul(x, w); }),
            "[matmul] inner sizes differ: (32, 784) x (10, 784); did you mean matmul(x, w.transpose())?");
  EXPECT_EQ(error_of([&] { matmul(x.transpose(), Tensor::zeros({784, 5})); }),
            "[matmul] inner sizes differ: (784, 32) x (784, 5); did you mean matmul(x.transpose(), w)?");
  EXPECT_EQ(error_of([&] { matmul(x, Tensor::zeros({3})); }),
            "[matmul] inner sizes differ: (32, 784) x (3,); the last axis of the left and the second last of the right must agree");
  EXPECT_EQ(error_of([&] { matmul(x, 2.0); }), "[matmul] (32, 784) x (): numbers have no inner axis; use *");
  EXPECT_THAT(error_of([] { matmul(Tensor::zeros({2, 1, 3}), Tensor::zeros({3, 3, 4})) + matmul(Tensor::zeros({2, 1, 3}), Tensor::zeros({3, 3, 4})); }),
              HasSubstr("do not broadcast"));
}

TEST(Losses, Errors) {
  const Tensor logits = Tensor::zeros({4, 10});
  EXPECT_EQ(error_of([&] { sparse_categorical_crossentropy(logits, Tensor::zeros({4})); }),
            "[sparse_categorical_crossentropy] labels are f32, not integers; cast them");
  EXPECT_EQ(error_of([&] { sparse_categorical_crossentropy(logits, Tensor::arange(5)); }),
            "[sparse_categorical_crossentropy] labels (5,) do not fit logits (4, 10): expected (4,)");
  EXPECT_EQ(error_of([&] { mse_loss(logits, Tensor::zeros({10})); }), "[mse_loss] shapes (4, 10) and (10,) differ");
}

TEST(Devices, MayNotBeMixed) {
  Tensor here = Tensor::from({1.f}), there = Tensor::from({1.f}).to("REFERENCE:1");
  EXPECT_EQ(here.to(here.device()).state(), here.state());
  if (here.device() == there.device()) GTEST_SKIP();
  EXPECT_THAT(error_of([&] { here + there; }), HasSubstr("[add] tensors are on " + here.device() + " and on " + there.device()));
  EXPECT_EQ((there + 1.0).device(), there.device());
  EXPECT_EQ((Tensor::ones({1}) + there).device(), there.device());
}

}  // namespace
}  // namespace plugrad
