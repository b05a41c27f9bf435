// Movement, indexing and reductions: shapes and edge cases. Values of ordinary cases are in
// vectors.h.
#include "expect.h"

namespace plugrad {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

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
  const Tensor x = Tensor::from({-kInfinite, -0.0, 0.0, kInfinite, kNaN, -1.5, 2.5, 3.5});
  expect_values(x.round(), {-kInfinite, 0, 0, kInfinite, kNaN, -2, 2, 4});
  expect_values(x.floor(), {-kInfinite, 0, 0, kInfinite, kNaN, -2, 2, 3});
  expect_values(x.ceil(), {-kInfinite, 0, 0, kInfinite, kNaN, -1, 3, 4});
  expect_values(x.relu(), {0, 0, 0, kInfinite, kNaN, 0, 2.5, 3.5});
  expect_values(x.abs(), {kInfinite, 0, 0, kInfinite, kNaN, 1.5, 2.5, 3.5});
  expect_values(x.sign(), {-1, 0, 0, 1, kNaN, -1, 1, 1});
  expect_values(x.isnan(), {0, 0, 0, 0, 1, 0, 0, 0});
  expect_values(x.isinf(), {1, 0, 0, 1, 0, 0, 0, 0});
  expect_values(x.isfinite(), {0, 1, 1, 0, 0, 1, 1, 1});
  expect_values(x.maximum(1.0), {1, 1, 1, kInfinite, kNaN, 1, 2.5, 3.5});
  expect_values(x.clamp(-1.0, 3.0), {-1, 0, 0, 3, kNaN, -1, 2.5, 3});
  expect_values(x <= 0.0, {1, 1, 1, 0, 0, 1, 0, 0});
  expect_values(x >= 0.0, {0, 1, 1, 1, 0, 0, 1, 1});
  EXPECT_FALSE(std::signbit(values(x.abs())[1]));
}

TEST(Power, AtItsEdges) {
  Tensor x = Tensor::from({0.0, 0.0, 0.0, -2.0, -2.0, -2.0, 1.0, kNaN, kInfinite, -kInfinite});
  const Tensor y = Tensor::from({0.0, -1.5, 2.5, 3.0, -2.0, 0.5, kInfinite, 0.0, 0.0, 3.0});
  x.requires_grad_();
  expect_values(x.pow(y), {1, kInfinite, 0, -8, 0.25, kNaN, 1, 1, 1, -kInfinite});
  expect_values(gradient(x.pow(y).sum(), {x})[0][Slice(2, 5)], {0, 12, 0.25});
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
  expect_values(a[size_t{1}].sum(size_t{0}), {22});
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
  // Computed on the device: the host would reject constant indices.
  expect_values(a.index_select(0, Tensor::from({-1, 3, 0, -4}) + 0), {7, 0, 5, 0});
  expect_values(a.gather(0, Tensor::from({1, 9}) + 0), {6, 0});
  expect_values((Tensor::from({1, 3, -1}) + 0).one_hot(3), {0, 1, 0, 0, 0, 0, 0, 0, 0});
}

TEST(Reductions, DtypesWiden) {
  const Tensor byte = Tensor::full({3}, 100, DType::I8), flag = Tensor::from({true, true, false});
  expect_values(byte.sum(), {300});
  EXPECT_EQ(byte.sum().dtype(), DType::I64);
  expect_values(flag.sum(), {2});
  EXPECT_EQ(Tensor::ones({2}, DType::U8).sum().dtype(), DType::U64);
  EXPECT_EQ(Tensor::ones({2}, DType::F16).sum().dtype(), DType::F16);
  EXPECT_EQ(byte.mean().dtype(), DType::F32);
  expect_values(Tensor::from({1, 2}).mean(), {1.5});
  expect_values(Tensor::full({4096}, 32, DType::F16).mean(), {32});  // the sum exceeds f16
  expect_values(
      Tensor::full({2, 300}, 100, DType::I8).matmul(Tensor::full({300, 1}, 100, DType::I8)),
      {3e6, 3e6});
}

TEST(Reductions, OfNothing) {
  const Tensor none = Tensor::zeros({0, 3});
  expect_values(none.sum(0), {0, 0, 0});
  expect_values(none.prod(0), {1, 1, 1});
  expect_values(none.max(0), {-kInfinite, -kInfinite, -kInfinite});
  expect_values(none.min(0), {kInfinite, kInfinite, kInfinite});
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
  const Tensor a = Tensor::from({{kInfinite, 1.}, {-kInfinite, -kInfinite}});
  expect_values(a.logsumexp(1), {kInfinite, -kInfinite});
  expect_values(Tensor::from({1000., 1000.}).logsumexp(), {1000 + std::log(2.0)}, 1e-9);
  expect_values(Tensor::from({1000., -1000.}).softmax(0), {1, 0});
  const Tensor same = Tensor::from({2., 2.});
  expect_values(gradient(same.std(), {same})[0], {0, 0});
}

}  // namespace
}  // namespace plugrad
