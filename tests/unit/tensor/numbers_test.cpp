// Numbers out of range of a dtype or a C++ type, constant indices, and values at the edges.
// Expected gradients are PyTorch's.
#include <cstdint>
#include <limits>

#include "expect.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr uint64_t kTop = uint64_t{1} << 63;

TEST(Sums, OfNarrowIntegersDoNotWrap) {
  const Tensor many = Tensor::arange(100000);
  EXPECT_EQ(many.sum().dtype(), DType::I64);
  EXPECT_EQ(many.sum().item<int64_t>(), 4999950000);
  EXPECT_EQ(many.cumsum(0)[{99999}].item<int64_t>(), 4999950000);
  const Tensor big = Tensor::from({65536, 65536, 4});
  EXPECT_EQ(big.prod().item<int64_t>(), int64_t{1} << 34);
  EXPECT_EQ(big.cumprod(0).to_vector<int64_t>(),
            (std::vector<int64_t>{65536, int64_t{1} << 32, int64_t{1} << 34}));
  const Tensor ones = Tensor::full({3}, uint32_t{4000000000}, DType::U32);
  EXPECT_EQ(ones.sum().dtype(), DType::U64);
  EXPECT_EQ(ones.sum().item<uint64_t>(), 12000000000);
  for (DType dtype : {DType::Bool, DType::I8, DType::I16, DType::I32, DType::I64})
    for (const Tensor& y : {Tensor::zeros({2}, dtype).sum(), Tensor::zeros({2}, dtype).prod(),
                            Tensor::zeros({2}, dtype).cumsum(0)})
      EXPECT_EQ(y.dtype(), DType::I64) << name_of(dtype);
  for (DType dtype : {DType::U8, DType::U16, DType::U32, DType::U64})
    EXPECT_EQ(Tensor::zeros({2}, dtype).cumprod(0).dtype(), DType::U64) << name_of(dtype);
  EXPECT_EQ(many.sum({}, false, DType::I32).item<int64_t>(), 704982704);  // requested dtype
  EXPECT_EQ(Tensor::zeros({2}, DType::F16).sum().dtype(), DType::F16);
}

// A double has 53 bits.
TEST(Arange, OfWholeNumbersIsExact) {
  const int64_t big = (int64_t{1} << 53) + 1, top = INT64_MAX;
  using Values = std::vector<int64_t>;
  EXPECT_EQ(Tensor::arange(big, big + 3, 1).to_vector<int64_t>(), (Values{big, big + 1, big + 2}));
  EXPECT_EQ(Tensor::arange(top - 2, top, 1).to_vector<int64_t>(), (Values{top - 2, top - 1}));
  EXPECT_EQ(Tensor::arange(INT64_MIN, top, top).to_vector<int64_t>(),
            (Values{INT64_MIN, -1, top - 1}));
  EXPECT_EQ(Tensor::arange(5, -9, -7).to_vector<int64_t>(), (Values{5, -2}));
  EXPECT_EQ(Tensor::arange(3, -1, -1, DType::U8).to_vector<int64_t>(), (Values{3, 2, 1, 0}));
  EXPECT_EQ(Tensor::arange(2, DType::Bool).to_vector<int64_t>(), (Values{0, 1}));
  EXPECT_EQ(Tensor::arange(4, 4, -1).numel() + Tensor::arange(4, 5, -1).numel(), 0);
}

TEST(Arange, BeyondI64AndOfFloatsIsExact) {
  EXPECT_EQ(Tensor::arange(kTop, kTop + 3, 1).to_vector<uint64_t>(),
            (std::vector<uint64_t>{kTop, kTop + 1, kTop + 2}));
  EXPECT_EQ(Tensor::arange(0x1p53, 0x1p53 + 4, 2.0, DType::I64).to_vector<int64_t>(),
            (std::vector<int64_t>{int64_t{1} << 53, (int64_t{1} << 53) + 2}));
  // f32 holds the sum, not the step.
  EXPECT_EQ(Tensor::arange(-16777216, 2, 16777217, DType::F32).to_vector<float>(),
            (std::vector<float>{-16777216, 1}));
}

TEST(Linspace, OfWholeNumbersIsExact) {
  const int64_t big = (int64_t{1} << 53) + 1, third = 6148914691236517205;  // (2^64 - 1) / 3
  using Values = std::vector<int64_t>;
  const auto line = [](const Tensor& start, const Tensor& stop, int64_t count, DType dtype) {
    return Tensor::linspace(start, stop, count, dtype).to_vector<int64_t>();
  };
  EXPECT_EQ(line(0, 16777217, 2, DType::I32), (Values{0, 16777217}));
  EXPECT_EQ(line(-2147483647, 2147483647, 3, DType::I32), (Values{-2147483647, 0, 2147483647}));
  EXPECT_EQ(line(big, big + 4, 3, DType::I64), (Values{big, big + 2, big + 4}));
  EXPECT_EQ(line(INT64_MIN, INT64_MAX, 4, DType::I64),
            (Values{INT64_MIN, INT64_MIN + third, INT64_MAX - third, INT64_MAX}));
  EXPECT_EQ(line(-5, 5, 4, DType::I8), (Values{-5, -1, 1, 5}));
  EXPECT_EQ(line(7, -7, 5, DType::I64), (Values{7, 3, 0, -3, -7}));
  EXPECT_EQ(line(3, 3, 2, DType::U8), (Values{3, 3}));
  EXPECT_EQ(line(0.5, 9.5, 4, DType::I32), (Values{0, 3, 6, 9}));
  EXPECT_EQ(line(9, 5, 1, DType::I32), Values{9});
  EXPECT_EQ(line(9, 5, 0, DType::I32), Values{});
  EXPECT_EQ(Tensor::linspace(1, UINT64_MAX, 3, DType::U64).to_vector<uint64_t>(),
            (std::vector<uint64_t>{1, kTop, UINT64_MAX}));
  EXPECT_EQ(error_of([] { Tensor::linspace(0, 300, 3, DType::U8); }),
            "[linspace] u8 does not hold 0 to 300; take a wider dtype");
}

TEST(Literals, BeyondI64DoNotWrap) {
  EXPECT_EQ(error_of([] { Tensor::full({1}, kTop, DType::I64); }),
            "[full] i64 does not hold the number 9223372036854775808; cast the tensor to a wider "
            "dtype");
  EXPECT_EQ(Tensor::full({1}, kTop, DType::U64).item<uint64_t>(), kTop);
  EXPECT_EQ(Tensor::full({1}, kTop, DType::F64).item<double>(), 0x1p63);
}

TEST(Edges, DistancesThatOverflowAreNotClose) {
  const Tensor least = Tensor::from({INT32_MIN, 100000}), most = Tensor::from({INT32_MAX, 100001});
  expect_values(least.isclose(most).cast(DType::I32), {0, 1});
}

TEST(Reading, IntoATypeThatDoesNotHoldTheValueIsAnError) {
  EXPECT_EQ(error_of([] { Tensor(-1).item<uint8_t>(); }),
            "[item] element 0 is -1, which u8 does not hold; read it as another type");
  EXPECT_THAT(error_of([] { Tensor::from({int64_t{1} << 40}).item<int>(); }),
              HasSubstr("is 1099511627776, which i32 does not hold"));
  EXPECT_THAT(error_of([] { Tensor::from({3.0, 300.0}).to_vector<int8_t>(); }),
              HasSubstr("[copy_to] element 1 is 300, which i8 does not hold"));
  EXPECT_THAT(error_of([] { Tensor::from({kNan}).item<int>(); }), HasSubstr("nan"));
  EXPECT_THAT(error_of([] { Tensor::from({1e300}).item<float>(); }), HasSubstr("f32"));
  EXPECT_THAT(error_of([] { Tensor::from({kTop}).item<int64_t>(); }),
              HasSubstr("9223372036854775808"));
  EXPECT_EQ(Tensor::from({-0.5, 255.9}).to_vector<uint8_t>(), (std::vector<uint8_t>{0, 255}));
  EXPECT_EQ(Tensor::from({kInf}).item<float>(), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Tensor::from({kTop}).item<double>(), 0x1p63);
  EXPECT_EQ(Tensor::from({2, 0}).to_vector<bool>(), (std::vector<bool>{true, false}));
}

TEST(Indices, ThatTheHostKnowsAreCheckedEverywhere) {
  const Tensor x = Tensor::zeros({3, 4});
  const Tensor low = Tensor::from({0, -4}), high = Tensor::from({1, 3});
  EXPECT_EQ(error_of([&] { embedding(x, Tensor::from({-1})); }),
            "[embedding] index -1 (element 0) is out of range for size 3: allowed are 0 to 2");
  EXPECT_THAT(error_of([&] { embedding(x, high); }), HasSubstr("index 3 (element 1)"));
  EXPECT_EQ(error_of([&] { x.index_select(0, low); }),
            "[index_select] index -4 (element 1) is out of range for size 3: allowed are -3 to 2");
  EXPECT_THAT(error_of([&] { x.gather(0, high.reshape({1, 2})); }), HasSubstr("[gather] index 3"));
  EXPECT_THAT(error_of([&] { x.scatter(0, high.reshape({1, 2}), 1.0); }),
              HasSubstr("[scatter] index 3"));
  EXPECT_THAT(
      error_of([&] { x.scatter_reduce(0, high.reshape({1, 2}), Tensor(1.0), Combine::Sum); }),
      HasSubstr("[scatter_reduce] index 3"));
  EXPECT_THAT(error_of([&] { x[Tensor(high)]; }), HasSubstr("[index] index 3"));
  EXPECT_THAT(error_of([&] { high.one_hot(3); }), HasSubstr("[one_hot] index 3"));
  EXPECT_THAT(error_of([&] { x.index_select(0, Tensor::from({kTop})); }),
              HasSubstr("index 9223372036854775808"));
  expect_values(Tensor::from({5.0f, 6.0f}).index_select(0, Tensor::from({-2, 1})), {5, 6});
}

TEST(Multinomial, WeightsThatDrawNothingAreAnError) {
  const auto refused = [](const Tensor& weights, bool replacement) {
    return error_of([&] { weights.multinomial(1, replacement); });
  };
  for (bool replacement : {false, true}) {
    EXPECT_THAT(refused(Tensor::from({0.0f, 0.0f}), replacement), HasSubstr("[multinomial] row 0"));
    EXPECT_THAT(refused(Tensor::from({2.0f, -1.0f}), replacement), HasSubstr("0 or more"));
    EXPECT_THAT(refused(Tensor::from({{1.0f, 1.0f}, {0.0f, float(kNan)}}), replacement),
                HasSubstr("row 1"));
  }
  EXPECT_EQ(Tensor::from({0.0f, 2.0f}).multinomial(1).item<int>(), 1);
}

TEST(U64, HostNumbersOf2To63AndMore) {
  const Tensor x = Tensor::full({2}, kTop);
  EXPECT_EQ(x.dtype(), DType::U64);
  EXPECT_EQ(x.to_vector<uint64_t>(), (std::vector<uint64_t>{kTop, kTop}));
  EXPECT_EQ((Tensor::from({1.0f}) * kTop).item<float>(), 0x1p63f);
  EXPECT_EQ((Tensor::from({uint64_t{1}}) + UINT64_MAX).item<uint64_t>(), 0u);
}

TEST(U64, ComparesWithNegativeNumbersAsNumbersDo) {
  const Tensor x = Tensor::from({uint64_t{0}, kTop, UINT64_MAX});
  expect_values((x > -1).cast(DType::I32), {1, 1, 1});
  expect_values((x >= -1).cast(DType::I32), {1, 1, 1});
  expect_values((x == -1).cast(DType::I32), {0, 0, 0});
  expect_values((x != -1).cast(DType::I32), {1, 1, 1});
  expect_values((-1 < x).cast(DType::I32), {1, 1, 1});
  expect_values((x < Tensor::from({int64_t{1}, INT64_MAX, int64_t{-1}})).cast(DType::I32),
                {1, 0, 0});
  expect_values((Tensor::from({-5, 7, 0}) < x).cast(DType::I32), {1, 1, 1});
  expect_values((Tensor::from({0, -1, -1}) == x).cast(DType::I32), {1, 0, 0});
  for (const auto& f : std::vector<std::function<Tensor()>>{[&] { return x.maximum(-1); },
                                                            [&] { return x.floor_div(-1); },
                                                            [&] { return where(x == 0, x, -1); }})
    EXPECT_THAT(error_of([&] { f(); }), HasSubstr("u64 does not hold the number -1"));
}

TEST(U64, QuotientsByNumbersAreExact) {
  const Tensor x = Tensor::from({uint64_t{0x20000000000003}});
  EXPECT_EQ(x.floor_div(1).item<uint64_t>(), 0x20000000000003u);
  EXPECT_EQ((x % 2).item<uint64_t>(), 1u);
}

TEST(U64, PowersAndSigns) {
  const Tensor x = Tensor::from({uint64_t{3}, uint64_t{1}, uint64_t{0}});
  const Tensor power = x.pow(Tensor::from({int64_t{40}, int64_t{-3}, int64_t{-1}}));
  EXPECT_EQ(power.dtype(), DType::U64);
  EXPECT_EQ(power.to_vector<uint64_t>(), (std::vector<uint64_t>{12157665459056928801u, 1, 0}));
  for (DType dtype : {DType::U8, DType::U16, DType::U32, DType::U64})
    expect_values(Tensor::from({0, 1, 200}).cast(dtype).sign(), {0, 1, 1});
}

TEST(Edges, RoundedQuotientsOfInfinity) {
  expect_values(
      Tensor::from({-5.0, 5.0, -5.0, 0.0}).floor_div(Tensor::from({kInf, kInf, -kInf, kInf})),
      {-1, 0, 0, 0});
  expect_values(Tensor(5.0).floor_div(Tensor::from({-kInf})), {-1});
}

TEST(Edges, TrianglesOfBoolStayBool) {
  const Tensor x = Tensor::full({2, 2}, true);
  EXPECT_EQ(x.tril().dtype(), DType::Bool);
  expect_values(x.tril().cast(DType::I32), {1, 0, 1, 1});
  expect_values(x.triu().cast(DType::I32), {1, 1, 0, 1});
}

struct Power {
  float x, y;
  double by_x, by_y;
};

TEST(Edges, GradientsOfPow) {
  const Power table[] = {{-2, .5f, kNan, kNan},
                         {-2, 5.5f, kNan, kNan},
                         {0, -1.5f, -kInf, -kInf},
                         {0, -3, -kInf, -kInf},
                         {-0.0f, -3, -kInf, kInf},
                         {0, .5f, kInf, 0},
                         {0, 0, 0, 0},
                         {0, 1, 1, 0},
                         {0, 2.5f, 0, 0},
                         {float(kInf), 2.5f, kInf, kInf},
                         {float(kInf), .5f, 0, kInf},
                         {float(kInf), -1.5f, 0, kNan},
                         {float(kInf), 0, 0, kInf},
                         {-float(kInf), 3, kInf, kNan},
                         {2, float(kInf), kInf, kInf},
                         {.5f, float(kInf), kNan, 0},
                         {1, float(kInf), kInf, 0},
                         {2, -float(kInf), kNan, 0},
                         {.5f, -float(kInf), -kInf, -kInf},
                         {3, 0, 0, 1.0986123},
                         {-3, 2, -6, kNan},
                         {2, 3.5f, 19.798990, 7.8420644}};
  for (const Power& p : table) {
    const Tensor x = Tensor::from({p.x}), y = Tensor::from({p.y});
    const std::vector<Tensor> found = gradient(x.pow(y).sum(), {x, y});
    SCOPED_TRACE(testing::Message() << p.x << " to the power of " << p.y);
    expect_values(found[0], {p.by_x}, 1e-6, 1e-5);
    expect_values(found[1], {p.by_y}, 1e-6, 1e-5);
  }
}

TEST(Powers, OfWholeNumbersAreExact) {
  const auto exact = [](const std::vector<double>& base, const std::vector<double>& exponent,
                        const std::vector<double>& expected, DType dtype) {
    Tensor x = Tensor::from(base).cast(dtype), y = Tensor::from(exponent).cast(dtype);
    EXPECT_EQ(values(x.pow(y)), expected);
    return gradient(x.pow(y).sum(), {x})[0];
  };
  const Tensor slope = exact({5, 3, 10, 7, -3, 6, 2, 0.5}, {2, 15, 7, 8, 3, 1, 15, 4},
                             {25, 14348907, 1e7, 5764801, -27, 6, 32768, 0.0625}, DType::F32);
  EXPECT_EQ(values(slope)[0], 10);
  EXPECT_EQ(values(slope)[5], 1);
  exact({3, 10, 7}, {33, 15, 18}, {5559060566555523, 1e15, 1628413597910449}, DType::F64);
  exact({12, 3}, {3, 7}, {1728, 2188}, DType::F16);  // 2187, rounded once
}

TEST(Powers, OfNegativeZeroAndInfinityAreThoseOfCHoweverTheExponentIsGiven) {
  const Tensor x = Tensor::from({-0.0f, -static_cast<float>(kInf)});
  for (const double y : {1.0 / 3, 0.5, 1.5, 2.5, 2.0, 3.0, -0.5, -1.0})
    for (const Tensor& exponent :
         {Tensor(y), Tensor::full({}, y, DType::F32), Tensor::from({y, y}).cast(DType::F32)}) {
      const std::vector<double> found = values(x.pow(exponent));
      for (size_t i = 0; i < 2; ++i) {
        const double expected = std::pow(i == 0 ? -0.0 : -kInf, y);
        EXPECT_EQ(found[i], expected) << y;
        EXPECT_EQ(std::signbit(found[i]), std::signbit(expected)) << y;
      }
    }
  EXPECT_EQ(x.pow(Tensor::full({}, 2.0, DType::F64)).dtype(), DType::F64);
  EXPECT_EQ(x.pow(Tensor::full({}, 0.5, DType::F64)).dtype(), DType::F64);
  const Tensor slope = gradient(x.pow(0.5).sum(), {x})[0];
  expect_values(slope, {kInf, 0});
}

TEST(Edges, OddFunctionsKeepTheSignOfZero) {
  const std::pair<const char*, Tensor (*)(const Tensor&)> functions[] = {
      {"log1p", [](const Tensor& x) { return x.log1p(); }},
      {"expm1", [](const Tensor& x) { return x.expm1(); }},
      {"sin", [](const Tensor& x) { return x.sin(); }},
      {"tan", [](const Tensor& x) { return x.tan(); }},
      {"asin", [](const Tensor& x) { return x.asin(); }},
      {"atan", [](const Tensor& x) { return x.atan(); }},
      {"sinh", [](const Tensor& x) { return x.sinh(); }},
      {"tanh", [](const Tensor& x) { return x.tanh(); }},
      {"asinh", [](const Tensor& x) { return x.asinh(); }},
      {"atanh", [](const Tensor& x) { return x.atanh(); }},
      {"erf", [](const Tensor& x) { return x.erf(); }},
      {"sqrt", [](const Tensor& x) { return x.sqrt(); }},
      {"round", [](const Tensor& x) { return x.round(); }},
      {"softsign", [](const Tensor& x) { return x.softsign(); }}};
  for (const auto& [name, function] : functions)
    for (const DType dtype : {DType::F16, DType::F32, DType::F64}) {
      SCOPED_TRACE(testing::Message() << name << " of " << name_of(dtype));
      const std::vector<double> found = values(function(Tensor::from({-0.0, 0.0}).cast(dtype)));
      EXPECT_EQ(found, (std::vector<double>{0, 0}));
      EXPECT_TRUE(std::signbit(found[0]));
      EXPECT_FALSE(std::signbit(found[1]));
    }
}

TEST(Edges, DropoutOfEverythingHasGradientsOfZero) {
  Tensor x = Tensor::from({1.0f, static_cast<float>(kNan)});
  x.requires_grad_();
  const Tensor y = x.dropout(1.0);
  expect_values(y, {0, 0});
  y.sum().backward();
  ASSERT_TRUE(x.grad().defined());
  expect_values(x.grad(), {0, 0});
}

TEST(Edges, GradientsOfWholePowers) {
  const Tensor x = Tensor::from({0.0, -0.0, kInf, -kInf, 2.0});
  const auto slope = [&](double n) { return gradient(x.pow(n).sum(), {x})[0]; };
  expect_values(slope(-1), {-kInf, -kInf, 0, 0, -0.25});
  expect_values(slope(-2), {-kInf, kInf, 0, 0, -0.25});
  expect_values(slope(-3), {-kInf, -kInf, 0, 0, -0.1875});
  expect_values(slope(2), {0, 0, kInf, -kInf, 4});
  expect_values(slope(0), {0, 0, 0, 0, 0});
}

TEST(Edges, SlopesOfCoshAndSinhDoNotOverflowBeforeTheirValues) {
  const Tensor x = Tensor::from({88.8f, -88.8f, 1.0f, 0.0f});
  expect_values(gradient(x.cosh().sum(), {x})[0], {1.8378979e38, -1.8378979e38, 1.1752012, 0}, 1e-6,
                2e-5);
  expect_values(gradient(x.sinh().sum(), {x})[0], {1.8378979e38, 1.8378979e38, 1.5430806, 1}, 1e-6,
                2e-5);
}

TEST(Edges, CeilModeTakesAWindowLargerThanTheImage) {
  const Tensor x = Tensor::arange(40).cast(DType::F32).reshape({1, 1, 5, 8});
  const Tensor y = x.max_pool2d(4, {.stride = {4, 1}, .dilation = 2, .ceil_mode = true});
  EXPECT_EQ(y.shape(), (Shape{1, 1, 1, 2}));
  expect_values(y, {38, 39});
}

TEST(Edges, SmallFloatsWithoutInfinityOverflowToNan) {
  const Tensor x = Tensor::from({448.0f, 464.0f, 465.0f, float(-kInf)});
  expect_values(x.cast(DType::F8E4M3).cast(DType::F32), {448, 448, kNan, kNan});
  expect_values(x.cast(DType::F8E5M2).cast(DType::F32), {448, 448, 448, -kInf});
}

TEST(Edges, InfinitiesBySign) {
  const Tensor x = Tensor::from({kInf, -kInf, kNan, 1.0});
  expect_values(x.isposinf().cast(DType::I32), {1, 0, 0, 0});
  expect_values(x.isneginf().cast(DType::I32), {0, 1, 0, 0});
  expect_values(Tensor::from({1, 2}).isposinf().cast(DType::I32), {0, 0});
}

TEST(Options, NormsOfNegativeOrder) {
  const Tensor x = Tensor::from({{3.0, 4.0}});
  expect_values(x.normalize(-1.0), {1.75, 2.3333333});
  expect_values(x.normalize(-kInf), {1, 1.3333333});
}

TEST(Options, AnEmptyListOfAxesReducesNothing) {
  const Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}});
  expect_values(x.sum(), {10});
  expect_values(x.sum({}), {10});
  expect_values(x.sum(std::vector<int64_t>()), {1, 2, 3, 4});
  expect_values(x.max(Axes::none()), {1, 2, 3, 4});
  expect_values(x.mean(Axes::none(), true), {1, 2, 3, 4});
  expect_values(x.flip(Axes::none()), {1, 2, 3, 4});
}

TEST(Options, DtypesOfEinsumAndSoftmax) {
  const Tensor half = Tensor::full({2, 2}, 200.0, DType::F16);
  const Tensor y = einsum("ij,jk->ik", {half, half}, DType::F32);
  EXPECT_EQ(y.dtype(), DType::F32);
  expect_values(y, {80000, 80000, 80000, 80000});
  EXPECT_EQ(half.softmax(-1, DType::F64).dtype(), DType::F64);
  EXPECT_EQ(log_softmax(Tensor::from({1, 2}), 0, DType::F64).dtype(), DType::F64);
  EXPECT_EQ(error_of([&] { half.softmax(0, DType::I32); }),
            "[softmax] results are floats, not i32");
}

TEST(Options, UnsortedTopkKeepsTheOrderOfPlaces) {
  const auto [values, places] = Tensor::from({3, 9, 1, 7}).topk(2, -1, true, false);
  expect_values(values, {9, 7});
  expect_values(places, {1, 3});
  const auto [least, at] = Tensor::from({3, 9, 1, 7}).topk(2, -1, false, false);
  expect_values(least, {3, 1});
  expect_values(at, {0, 2});
}

TEST(Options, MaxUnpoolOfDilatedWindows) {
  const Tensor x = Tensor::arange(25).cast(DType::F32).reshape({1, 5, 5});
  const PoolOptions options{.stride = 2, .dilation = 2};
  const auto [values, places] = max_pool2d_with_places(x, 2, options);
  EXPECT_EQ(values.shape(), (Shape{1, 2, 2}));
  const Tensor y = max_unpool2d(values, places, 2, {.stride = 2, .dilation = 2});
  EXPECT_EQ(y.shape(), (Shape{1, 5, 5}));
  expect_values(y[{0, 4}], {0, 0, 22, 0, 24});
}

TEST(Dtypes, OfNumbersOfTheProgramAreNoneOfTensors) {
  const Tensor x = Tensor::from({1, 2});
  EXPECT_EQ(error_of([&] { x.sum({}, false, DType::Index); }),
            "[sum] index is the dtype of numbers of the program, not of a tensor; give one such as "
            "i32, i64 or f32, or none");
  EXPECT_THAT(error_of([&] { x.cumsum(0, DType::Index); }), HasSubstr("[cumsum] index is"));
  EXPECT_THAT(error_of([&] { Tensor::arange(3, DType::WeakFloat); }),
              HasSubstr("[arange] weakfloat is"));
  EXPECT_THAT(error_of([&] { Tensor::full({2}, 1, DType::Index); }), HasSubstr("[full] index is"));
}

// No integer dtype holds both ranges: 64 bits against f32's 24 make the loss visible.
TEST(U64, BesideSignedTensorsPromotesToF32ExceptInComparisonsAndPow) {
  const Tensor x = Tensor::from({uint64_t{16777217}}), y = Tensor::from({int64_t{-16777217}});
  for (const Tensor& z : {x + y, x - y, x * y, x.maximum(y), x.minimum(y), x.floor_div(y), x % y,
                          where(x == 0, x, y), y.maximum(x)})
    EXPECT_EQ(z.dtype(), DType::F32);
  EXPECT_EQ(x.maximum(y).item<float>(), 16777216.0f);
  EXPECT_EQ(x.maximum(y.cast(DType::U64)).dtype(), DType::U64);
  EXPECT_EQ((x.cast(DType::I64) + y).item<int64_t>(), 0);
  EXPECT_THAT(error_of([&] { x & y; }), HasSubstr("[and] takes integers or bool, not f32"));
  EXPECT_TRUE((x > y).item<bool>());
  EXPECT_EQ(x.pow(Tensor::from({int64_t{1}})).item<uint64_t>(), 16777217u);
}

TEST(Dtypes, NumbersThatAreNoneAreErrors) {
  const Tensor x = Tensor::zeros({2});
  const auto unknown = static_cast<DType>(77);
  EXPECT_EQ(error_of([&] { x.cast(unknown); }), "[cast] number 77 is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { x.bitcast(unknown); }), "[bitcast] number 77 is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { Tensor::zeros({2}, unknown); }),
            "[zeros] number 77 is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { x.sum({}, false, unknown); }),
            "[sum] number 77 is no dtype of a tensor");
  const DType mistyped = dtype_from_name("flaot");
  EXPECT_EQ(error_of([&] { Tensor::zeros({2}, mistyped); }),
            "[zeros] void is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { x.sum({}, false, mistyped); }), "[sum] void is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { Tensor::arange(3, mistyped); }),
            "[arange] void is no dtype of a tensor");
  EXPECT_EQ(error_of([&] { x.rand_like(mistyped); }),
            "[rand_like] draws f16, bf16, f32 or f64, not void; use randint, or cast");
  EXPECT_THAT(error_of([&] { x.bitcast(DType::Bool); }), HasSubstr("[bitcast] f32 and bool"));
}

TEST(Gradients, AValueThatWasReadSaysWhatToDo) {
  const Tensor x = Tensor::from({1.0, 2.0}), loss = x.square().sum();
  EXPECT_EQ(loss.item<double>(), 5.0);
  EXPECT_THAT(error_of([&] { gradient(loss, {x}); }),
              HasSubstr("call gradient() before that, or requires_grad_() on the target"));
  const Tensor marked = Tensor::from({1.0, 2.0}).requires_grad_(), kept = marked.square().sum();
  EXPECT_EQ(kept.item<double>(), 5.0);
  expect_values(gradient(kept, {marked})[0], {2, 4});
}

// Sums of quantised numbers often lie halfway between two integers. They must round alike whether
// product and sum share a kernel or not.
TEST(Numbers, WhatIsRoundedToIntegersIsProductThenSum) {
  std::vector<double> wanted;
  size_t differ = 0;
  for (int i = -2000; i < 2000; ++i) {
    volatile float product = static_cast<float>(i) * 0.1f;
    volatile float sum = product + 0.05f;
    const float fused = std::fma(static_cast<float>(i), 0.1f, 0.05f);
    differ += std::nearbyint(sum * 10.0f) != std::nearbyint(fused * 10.0f);
    wanted.push_back(std::nearbyint(sum * 10.0f));
  }
  ASSERT_GT(differ, 100u);  // so that a fused multiply-add shows
  const Tensor x = Tensor::arange(-2000, 2000, 1, DType::F32).contiguous();
  EXPECT_EQ(values(((x * 0.1f + 0.05f) * 10.0f).round()), wanted);
}

}  // namespace
}  // namespace plugrad
