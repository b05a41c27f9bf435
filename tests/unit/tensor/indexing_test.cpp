// Indexing by data and assignment through an index. tests/ops compares ordinary values with
// PyTorch.
#include "expect.h"

namespace plugrad {
namespace {

Tensor places(std::initializer_list<int64_t> list) {
  return Tensor::from(list);
}

TEST(IndexByData, SeveralAxesBroadcastAndStayWhereTheyAre) {
  const Tensor a = counting({2, 3, 4});
  expect_values(a[{places({0, 1}), places({2, 0})}], {8, 9, 10, 11, 12, 13, 14, 15});
  expect_values(a[{places({0, 1}).reshape({2, 1}), places({2, 0}), 1}], {9, 1, 21, 13});
  // Index tensors that are not adjacent: their axes come first.
  const Tensor apart = a[{places({0, 1, 1}), Slice(), places({0, 1, 3})}];
  EXPECT_EQ(apart.shape(), (Shape{3, 3}));
  expect_values(apart, {0, 4, 8, 13, 17, 21, 15, 19, 23});
  EXPECT_EQ((a[{places({0}), kNewAxis, places({0})}].shape()), (Shape{1, 1, 4}));
  EXPECT_EQ((a[{Slice(), places({0, 1, 2}), places({0})}].shape()), (Shape{2, 3}));
  // An integer index is applied first and does not separate index tensors.
  EXPECT_EQ((counting({2, 3, 4, 5})[{Slice(), places({0, 1}), 0, places({0, 1})}].shape()),
            (Shape{2, 2}));
  EXPECT_EQ((counting({2, 3, 4, 5})[{0, Slice(), places({0, 1})}].shape()), (Shape{3, 2, 5}));
}

// What moves elements by data moves -0, too; an index out of range reads +0.
TEST(IndexByData, KeepsTheSignOfZero) {
  const auto signs = [](const Tensor& x) {
    std::vector<bool> out;
    for (double value : x.cast(DType::F64).to_vector<double>()) out.push_back(std::signbit(value));
    return out;
  };
  const Tensor at = places({2, 0}) + 0;
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const Tensor x = Tensor::from({-0.0, 1.0, 0.0, -0.0}).cast(dtype).realize();
    EXPECT_EQ(signs(x[{at}]), (std::vector{false, true})) << name_of(dtype);
    EXPECT_EQ(signs(x.gather(0, at)), (std::vector{false, true}));
    EXPECT_EQ(signs(x.reshape({2, 2})[{at.minimum(1), at.minimum(1)}]), (std::vector{true, true}));
    EXPECT_EQ(signs(x.sort().first), (std::vector{true, false, true, false}));
    EXPECT_EQ(signs(x.masked_select(x == 0)), (std::vector{true, false, true}));
    EXPECT_EQ(signs(embedding(x.reshape({2, 2}), at.minimum(1))),
              (std::vector{false, true, true, false}));
    EXPECT_EQ(signs(x.index_select(0, places({7, 3}) + 0)), (std::vector{false, true}));
  }
}

TEST(IndexByData, ListsAreCheckedAndTensorsReadZero) {
  const Tensor a = counting({3, 4}, 1);
  expect_values(a[{{2, -3}, {0, 1}}], {9, 2});
  expect_values(a[{Slice(), {-1, 0}}], {4, 1, 8, 5, 12, 9});
  expect_values(a.index({Index(std::vector<int64_t>{1})}), {5, 6, 7, 8});
  expect_values(a[{places({0, 3, -4, 2}) + 0, places({0, 0, 0, 4}) + 0}], {1, 0, 0, 0});
  EXPECT_EQ((a[{{}, 1}].shape()), Shape{0});
  EXPECT_EQ(error_of([&] { a[{Slice(), {1, 4}}]; }),
            "[index] 4 is out of range for axis 1 of (3, 4)");
  EXPECT_EQ(error_of([&] { a[a > 2]; }),
            "[index] index 0 is a bool mask: use masked_select(mask), or masked_fill and "
            "where(mask, …), which "
            "keeps the shape");
  EXPECT_EQ(error_of([&] { a[{Slice(), a}]; }), "[index] indices are f32, not integers; cast them");
  EXPECT_THAT(error_of([&] { (a[{places({0, 1}), places({0, 1, 2})}]); }),
              testing::HasSubstr("[index] shapes (2,) and (3,) do not broadcast"));
}

TEST(IndexByData, ElementsAtSeveralIndicesKeepTheirDtype) {
  const Tensor rows = Tensor::from<int32_t>({0, 1}), columns = Tensor::from<int32_t>({1, 0});
  for (const DType dtype : {DType::Bool, DType::U8, DType::F16, DType::I64}) {
    const Tensor x = Tensor::from<float>({0, 1, 0, 1}).reshape({2, 2}).cast(dtype);
    EXPECT_EQ(x.index({rows, columns}).dtype(), dtype);
    EXPECT_EQ(x.index({rows, columns}).cast(DType::I32).to_vector<int32_t>(),
              (std::vector<int32_t>{1, 0}));
  }
}

TEST(IndexByData, SmallAndUnsignedPlacesDoNotWrap) {
  const Tensor a = counting({200});
  expect_values(a[Tensor::from<int8_t>({-1, -128, 127})], {199, 72, 127});
  expect_values(a[Tensor::from<uint8_t>({199, 200, 255}) + 0], {199, 0, 0});
  expect_values(a[Tensor::from<uint64_t>({199, ~uint64_t{0}, 3}) + 0], {199, 0, 3});
  const Tensor b = counting({2, 200});
  expect_values(b[{Tensor::from<uint8_t>({1}), Tensor::from<uint8_t>({199})}], {399});
  expect_values(Tensor::zeros({0, 3})[{places({0, 1}) + 0, places({0, 1})}], {0, 0});
}

TEST(IndexByData, HasAGradient) {
  Tensor a = counting({3, 4}).requires_grad_();
  (a[{{0, 0, 2}, {1, 1, 3}}] * Tensor::from({1.f, 2.f, 4.f})).sum().backward();
  expect_values(a.grad(), {0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4});
}

TEST(SetItem, NumbersSlicesAndNewAxes) {
  Tensor x = counting({3, 4});
  const Tensor copy = x, before = x + 0.0;
  x[{Slice(1, 3), 0}] = Tensor::from({-1.f, -2.f});
  expect_values(copy, {0, 1, 2, 3, -1, 5, 6, 7, -2, 9, 10, 11});
  expect_values(before, values(counting({3, 4})));
  x[0] += 10;
  x[{kEllipsis, Slice({}, {}, -2)}] = Tensor::from({50, 60});  // columns 3 and 1
  expect_values(x, {10, 60, 12, 50, -1, 60, 6, 50, -2, 60, 10, 50});
  x[{Slice({}, {}, 2), Slice(0, 3, 2)}] *= 2;
  expect_values(x, {20, 60, 24, 50, -1, 60, 6, 50, -4, 60, 20, 50});
  x[{kNewAxis, -1, kNewAxis}] = x[{0, kNewAxis, kNewAxis}];
  expect_values(x[2], {20, 60, 24, 50});
  x[{Slice(5, 9)}] = 7;
  x[{}] = 1;
  expect_values(x, std::vector<double>(12, 1.0));
  x[{Slice(), 1}] = x.sum(1);
  expect_values(x[1], {1, 4, 1, 1});
}

TEST(SetItem, WritesThroughChainsOfIndices) {
  Tensor x = counting({2, 3});
  x[1][2] = 9;
  x[Slice(0, 1)][0][Slice(1, 3)] -= 5;
  expect_values(x, {0, -4, -3, 3, 4, 9});
  auto row = x[0];
  row[0] = 100;
  row += 1;
  row = row * 2;  // another tensor from here on
  expect_values(row, {202, -6, -4});
  expect_values(x, {101, -3, -2, 3, 4, 9});
  EXPECT_EQ(
      error_of([&] { x[{{0, 1}}][0] = 1; }),
      "[setitem] the elements of a temporary tensor would change, which nothing shows: use one "
      "index, x[{indices, …}] = value, or name the tensor");
}

TEST(SetItem, PlacesThatAreData) {
  Tensor x = counting({4, 2});
  x[places({3, 0, 3})] = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});  // the last wins
  expect_values(x, {3, 4, 2, 3, 4, 5, 5, 6});
  x[{places({0, 0, -1}), {1, 1, 0}}] += 10;  // read once, written once
  expect_values(x, {3, 14, 2, 3, 4, 5, 15, 6});
  x[{places({7, -9}) + 0, 0}] = 99;  // out of range, computed by the device
  x[{Slice(0, 2), places({1})}] = Tensor::from({{-1}, {-2}});
  expect_values(x, {3, -1, 2, -2, 4, 5, 15, 6});
  Tensor cube = counting({2, 3, 2});
  cube[{places({0, 1}), Slice(), places({1, 0})}] = Tensor::from({{1, 2, 3}, {4, 5, 6}});
  expect_values(cube, {0, 1, 2, 2, 4, 3, 4, 7, 5, 9, 6, 11});
}

TEST(SetItem, CastsAsAssignDoesAndChecksShapes) {
  Tensor bytes = Tensor::zeros({4}, DType::U8), none = Tensor::zeros({0, 3});
  bytes[Slice(1, 3)] = 300;
  expect_values(bytes, {0, 44, 44, 0});
  none[{Slice(), 1}] = 3;
  none[places({})] = 3;
  EXPECT_EQ(none.shape(), (Shape{0, 3}));
  Tensor scalar = Tensor::from({2.f})[0];
  scalar[{}] = 5;
  scalar[kEllipsis] += 1;
  expect_values(scalar, {6});
  EXPECT_EQ(error_of([&] { bytes[0] = 1.5; }),
            "[setitem] a f32 value into a u8 tensor; cast it first");
  EXPECT_EQ(error_of([&] { bytes[Slice(0, 2)] = Tensor::from({1, 2, 3}); }),
            "[setitem] a value of (3,) does not broadcast to the (2,) that is indexed");
  bytes[Slice(0, 2)] = Tensor::from({1, 2}, {1, 1, 2});
  expect_values(bytes, {1, 2, 44, 0});
  EXPECT_EQ(error_of([&] { bytes[4] = 1; }), "[index] 4 is out of range for axis 0 of (4,)");
  static_assert(!std::is_assignable_v<Tensor, Tensor> && !std::is_assignable_v<Tensor, int>);
  static_assert(!std::is_assignable_v<decltype(std::declval<const Tensor&>()[0]), Tensor>);
}

TEST(SetItem, IsDifferentiableExceptOnALeaf) {
  Tensor w = Tensor::from({2.f, 3.f}).requires_grad_();
  Tensor x = w * w;
  x[0] = w[1] * 5;
  x[1] *= w[0];
  x.sum().backward();  // 5 w1 + w0 w1²
  expect_values(w.grad(), {9, 5 + 12});
  EXPECT_THAT(error_of([&] { w[0] = 1; }), testing::StartsWith("[setitem] a leaf"));
  expect_values(w, {2, 3});
}

TEST(SetItem, ManyTimes) {
  Tensor x = Tensor::zeros({50});
  for (int i = 0; i < 50; ++i) x[i] = i * i;
  std::vector<double> squares;
  for (int i = 0; i < 50; ++i) squares.push_back(i * i);
  expect_values(x, squares);
}

TEST(Scatter, ReplacesAddsAndMultiplies) {
  const Tensor x = Tensor::ones({3, 3}), rows = Tensor::from({{0, 1, 2}, {0, 0, -3}});
  const Tensor v = counting({2, 3}, 2);
  expect_values(x.scatter(0, rows, v), {5, 6, 7, 1, 3, 1, 1, 1, 4});
  expect_values(x.scatter(0, rows, v, Combine::Sum), {8, 7, 8, 1, 4, 1, 1, 1, 5});
  expect_values(x.scatter(0, rows, v, Combine::Prod), {10, 6, 7, 1, 3, 1, 1, 1, 4});
  expect_values(x.scatter(1, rows, 9), {9, 9, 9, 9, 1, 1, 1, 1, 1});
  const Tensor y = Tensor::from({-0.0, 1.0}).scatter(0, Tensor::from({1}), 2.0, Combine::Sum);
  EXPECT_TRUE(std::signbit(values(y)[0]));
}

TEST(Scatter, ReducesWithAndWithoutTheElement) {
  const Tensor x = Tensor::from({1, 2, 3, -4}), at = Tensor::from({0, 0, 1, 3}),
               v = Tensor::from({5, -8, 4, 2});
  const auto of = [&](Combine how, bool self) {
    return values(x.scatter_reduce(0, at, v, how, self));
  };
  using D = std::vector<double>;
  EXPECT_EQ(of(Combine::Sum, true), (D{-2, 6, 3, -2}));
  EXPECT_EQ(of(Combine::Sum, false), (D{-3, 4, 3, 2}));
  EXPECT_EQ(of(Combine::Prod, false), (D{-40, 4, 3, 2}));
  EXPECT_EQ(of(Combine::Mean, true), (D{-1, 3, 3, -1}));
  EXPECT_EQ(of(Combine::Max, true), (D{5, 4, 3, 2}));
  EXPECT_EQ(of(Combine::Min, true), (D{-8, 2, 3, -4}));
  EXPECT_EQ(of(Combine::Min, false), (D{-8, 4, 3, 2}));
  const Tensor byte = Tensor::from<uint8_t>({200});
  expect_values(byte.scatter_reduce(0, Tensor::from({0}), 3, Combine::Min), {3});
  EXPECT_EQ(error_of([&] { x.scatter(0, Tensor::from({{1}}), v); }),
            "[scatter] indices (1, 1) and (4,) have different numbers of axes");
  EXPECT_EQ(error_of([&] { x.scatter(0, at, v[Slice(0, 2)]); }),
            "[scatter] indices (4,) are larger than values (2,) along 0");
  EXPECT_EQ(error_of([&] { x.scatter(0, at, 1.5); }),
            "[scatter] f32 values into a i32 tensor; cast them first");
}

TEST(Masked, SelectAndNonzero) {
  const Tensor x = Tensor::from({{3, 0, 5}, {0, 7, 9}}), mask = x > 4;
  expect_values(x.masked_select(mask), {5, 7, 9});
  expect_values(x.masked_select(mask, 5, -1), {5, 7, 9, -1, -1});
  expect_values(x.masked_select(mask, 2), {5, 7});
  expect_values(x.masked_select(Tensor::from({true, false, true})), {3, 5, 0, 9});
  expect_values(x.nonzero(), {0, 0, 0, 2, 1, 1, 1, 2});
  expect_values(x.nonzero(5, -1).slice(0, {3, 5}), {1, 2, -1, -1});
  EXPECT_EQ(Tensor::zeros({2, 0}).nonzero().shape(), (Shape{0, 2}));
  EXPECT_EQ(x.masked_select(x > 100).shape(), Shape{0});
  EXPECT_EQ(Tensor(3).nonzero().shape(), (Shape{1, 0}));
  const Tensor many = Tensor::arange(1000);
  expect_values(many.masked_select(many % 97 == 5),
                {5, 102, 199, 296, 393, 490, 587, 684, 781, 878, 975});
  EXPECT_EQ(error_of([&] { x.masked_select(x); }),
            "[masked_select] the mask is i32, not bool; compare it first");
  EXPECT_EQ(error_of([&] { x.masked_select(mask, -1); }), "[masked_select] size -1 is negative");
}

}  // namespace
}  // namespace plugrad
