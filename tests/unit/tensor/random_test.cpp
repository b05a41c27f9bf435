// Random functions: bounds, moments, error messages. The seed is fixed, so the test is
// deterministic.
#include <algorithm>
#include <numeric>

#include "engine/session.h"
#include "expect.h"

namespace plugrad {
namespace {

struct Moments {
  double mean, deviation, least, largest;
};
Moments moments(const Tensor& t) {
  const std::vector<double> v = values(t);
  const double n = static_cast<double>(v.size()),
               mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double squares = 0;
  for (double x : v) squares += (x - mean) * (x - mean);
  return {mean, std::sqrt(squares / n), *std::ranges::min_element(v), *std::ranges::max_element(v)};
}

class RandomFunctions : public testing::Test {
 protected:
  void SetUp() override { Tensor::manual_seed(1); }
};

TEST_F(RandomFunctions, DistributionsHaveTheirMomentsAndBounds) {
  const Moments u = moments(Tensor::uniform({4000}, -2, 6));
  EXPECT_NEAR(u.mean, 2, 0.15);
  EXPECT_NEAR(u.deviation, 8 / std::sqrt(12), 0.1);
  EXPECT_GE(u.least, -2);
  EXPECT_LT(u.largest, 6);
  const Moments n = moments(Tensor::normal({4000}, 3, 0.5));
  EXPECT_NEAR(n.mean, 3, 0.03);
  EXPECT_NEAR(n.deviation, 0.5, 0.03);
  const Moments s = moments(Tensor::scaled_uniform({40, 100}));
  EXPECT_NEAR(s.deviation, 1 / std::sqrt(4000.0 * 3), 1e-3);
  EXPECT_LE(s.largest, 1 / std::sqrt(4000.0));
  const Moments k = moments(Tensor::kaiming_normal({40, 100}, 0));
  EXPECT_NEAR(k.deviation, std::sqrt(2.0 / 100), 0.01);
  EXPECT_LE(moments(Tensor::kaiming_uniform({40, 100}, 0)).largest, std::sqrt(6.0 / 100));
  EXPECT_LE(moments(Tensor::glorot_uniform({40, 100})).largest, std::sqrt(6.0 / 140));
}

TEST_F(RandomFunctions, IntegersFillTheirRange) {
  const std::vector<double> small = values(Tensor::randint({600}, -3, 3));
  for (int i = -3; i < 3; ++i) EXPECT_GT(std::ranges::count(small, i), 60) << i;
  EXPECT_EQ(std::ranges::count_if(small, [](double x) { return x < -3 || x >= 3; }), 0);
  const Moments wide = moments(Tensor::randint({2000}, INT32_MIN, INT32_MAX));
  EXPECT_LT(wide.least, -2.1e9);
  EXPECT_GT(wide.largest, 2.1e9);
  const std::vector<double> large = values(Tensor::randint({64}, 1 << 24, (1 << 24) + (1 << 25)));
  EXPECT_TRUE(std::ranges::any_of(large, [](double x) { return std::fmod(x, 2) != 0; }));
  expect_values(Tensor::randint({3}, INT64_MAX - 1, INT64_MAX, DType::I64) - (INT64_MAX - 1),
                {0, 0, 0});
  expect_values(Tensor::randint({2}, 255, 256, DType::U8), {255, 255});
}

TEST_F(RandomFunctions, PermutationsHaveEachPlaceOnce) {
  for (const int64_t n : {0, 1, 2, 100, 700}) {
    std::vector<double> order = values(Tensor::randperm(n));
    EXPECT_EQ(std::ranges::is_sorted(order), n < 3);
    std::ranges::sort(order);
    for (int64_t i = 0; i < n; ++i)
      EXPECT_EQ(order[static_cast<size_t>(i)], static_cast<double>(i));
  }
  EXPECT_EQ(Tensor::randperm(5, DType::I64).dtype(), DType::I64);
}

TEST_F(RandomFunctions, MultinomialDrawsInProportion) {
  const Tensor weights = Tensor::from({1.f, 0.f, 3.f, 4.f, 0.f});
  const std::vector<double> drawn = values(weights.multinomial(4000, true));
  const double shares[] = {1, 0, 3, 4, 0};
  for (int i = 0; i < 5; ++i)
    EXPECT_NEAR(static_cast<double>(std::ranges::count(drawn, i)), 500 * shares[i], 130) << i;
  const Tensor rows = Tensor::from({{1, 1, 0, 2}, {0, 0, 5, 0}});
  const std::vector<double> second = values(rows.multinomial(7, true)[1]);
  EXPECT_EQ(second, std::vector<double>(7, 2));
  // Without replacement: a permutation in which zero weights come last and large weights early.
  int first_is_heavy = 0;
  for (int trial = 0; trial < 40; ++trial) {
    std::vector<double> order = values(Tensor::from({0.f, 1.f, 1.f, 50.f}).multinomial(4));
    first_is_heavy += order[0] == 3;
    EXPECT_EQ(order[3], 0);
    std::ranges::sort(order);
    EXPECT_EQ(order, (std::vector<double>{0, 1, 2, 3}));
  }
  EXPECT_GT(first_is_heavy, 32);
  EXPECT_EQ(rows.multinomial(2).shape(), (Shape{2, 2}));
}

TEST_F(RandomFunctions, LikeAnotherTensor) {
  const Tensor half = Tensor::zeros({3, 2}, DType::F16), whole = Tensor::zeros({4}, DType::I32);
  EXPECT_EQ(half.rand_like().dtype(), DType::F16);
  EXPECT_EQ(half.randn_like(DType::F64).dtype(), DType::F64);
  EXPECT_EQ(whole.rand_like(DType::F32).shape(), Shape{4});
  EXPECT_EQ(Tensor::uniform({2, 0}, 0, 1).shape(), (Shape{2, 0}));
}

// Layers draw their weights with other bounds each.
TEST_F(RandomFunctions, DrawsOfOneSizeShareTheirKernels) {
  const auto compiled = [] { return engine::Session::current().statistics().kernels_compiled; };
  for (const auto draw : {&Tensor::uniform, &Tensor::normal}) {
    draw({3, 271}, -0.5, 0.75, DType::F32, {}).realize();
    const uint64_t before = compiled();
    const Tensor second = draw({3, 271}, 3, 4.5, DType::F32, {}).realize();
    EXPECT_EQ(compiled(), before);
    EXPECT_NEAR(moments(second).mean, draw == &Tensor::uniform ? 3.75 : 3, 0.5);
  }
}

// The numbers are those of the arithmetic with constants, for doubles too.
TEST_F(RandomFunctions, BoundsAreAppliedToRandomNumbers) {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Tensor::manual_seed(7);
    const std::vector<double> got = values(Tensor::uniform({65}, -0.3, 0.9, dtype));
    Tensor::manual_seed(7);
    EXPECT_EQ(got, values(Tensor::rand({65}, dtype) * (0.9 - -0.3) + -0.3));
  }
}

TEST_F(RandomFunctions, RefusesWhatHasNoValues) {
  EXPECT_EQ(error_of([] { Tensor::randint({2}, 3, 3); }),
            "[randint] there is no integer in [3, 3)");
  EXPECT_EQ(error_of([] { Tensor::randint({2}, -1, 3, DType::U8); }),
            "[randint] u8 does not hold [-1, 3)");
  EXPECT_EQ(error_of([] { Tensor::randint({2}, 0, 257, DType::U8); }),
            "[randint] u8 does not hold [0, 257)");
  EXPECT_EQ(error_of([] { Tensor::randint({-2}, 0, 9); }),
            "[randint] size -2 in (-2,) is negative");
  EXPECT_EQ(error_of([] { Tensor::uniform({2}, 1, 0); }), "[uniform] there is no number in [1, 0)");
  EXPECT_EQ(error_of([] { Tensor::uniform({2}, 0, NAN); }),
            "[uniform] there is no number in [0, nan)");
  EXPECT_EQ(error_of([] { Tensor::normal({2}, 0, -1); }), "[normal] the deviation is -1");
  EXPECT_EQ(error_of([] { Tensor::uniform({2}, 0, 1, DType::I32); }),
            "[uniform] draws floats, not i32; use randint");
  EXPECT_EQ(error_of([] { Tensor::randn({2}, DType::Bool); }), "[randn] draws floats, not bool");
  EXPECT_EQ(error_of([] { Tensor::randperm(-1); }), "[randperm] the length -1 is negative");
  EXPECT_EQ(error_of([] { Tensor::randperm(300, DType::I8); }),
            "[randperm] i8 does not hold 0 to 299");
  EXPECT_EQ(error_of([] { Tensor::randperm(int64_t{1} << 40, DType::I64); }),
            "[randperm] 1099511627776 numbers are too many to sort at once; it takes 2147483647 at "
            "most");
  EXPECT_EQ(error_of([] { Tensor::kaiming_normal({}); }), "[kaiming_normal] the shape has no axes");
  EXPECT_EQ(error_of([] { Tensor::ones({3}).multinomial(4); }),
            "[multinomial] 4 draws without replacement of the 3 categories of (3,)");
  EXPECT_EQ(error_of([] { Tensor::ones({0}).multinomial(1, true); }),
            "[multinomial] 1 draws of the 0 categories of (0,)");
  EXPECT_EQ(error_of([] { Tensor::ones({2, 2, 2}).multinomial(1); }),
            "[multinomial] weights have shape (2, 2, 2), not one or two axes");
}

}  // namespace
}  // namespace plugrad
