// Sums of very many f32: the error is that of a few hundred additions for every schedule.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "base/settings.h"
#include "plugrad/functional.h"

namespace plugrad {
namespace {

struct Case {
  const char* name;
  Shape shape;
  std::vector<int64_t> axes;
  bool noopt;
};

std::vector<float> positives(size_t count) {
  std::minstd_rand random(7);
  std::vector<float> values(count);
  for (float& v : values) v = std::uniform_real_distribution<float>(0, 1)(random);
  return values;
}

// The largest relative error of x.sum(axes) of a matrix, compared with sums in double.
double error_of_sum(const Case& c, const std::vector<float>& values) {
  const auto rows = static_cast<size_t>(c.shape[0]), columns = static_cast<size_t>(c.shape[1]);
  const bool down = c.axes[0] == 0, across = c.axes.back() == 1;
  std::vector<double> expected(down && across ? 1 : down ? columns : rows);
  for (size_t i = 0; i < rows; ++i)
    for (size_t j = 0; j < columns; ++j)
      expected[down && across ? 0 : down ? j : i] += static_cast<double>(values[i * columns + j]);
  const Tensor x = Tensor::from(values, c.shape);
  const std::vector<float> sums = x.sum(c.axes).to_vector<float>();
  double worst = 0;
  for (size_t i = 0; i < expected.size(); ++i)
    worst = std::max(worst, std::abs(static_cast<double>(sums[i]) / expected[i] - 1));
  return worst;
}

class BlockedSummation : public testing::TestWithParam<Case> {};

// One addition has an error of 2^-24. Sequential summation of the columns would have an error of
// more than 1e-5.
TEST_P(BlockedSummation, AreNearlyExact) {
  const Case& c = GetParam();
  const SettingScope scope([&](Settings& s) { s.noopt = c.noopt; });
  const auto count = static_cast<size_t>(c.shape[0] * c.shape[1]);
  EXPECT_LT(error_of_sum(c, positives(count)), 1.5e-6);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BlockedSummation,
                         testing::Values(Case{"columns", {200'000, 16}, {0}, false},
                                         Case{"columns_of_a_prime", {100'003, 5}, {0}, false},
                                         Case{"rows", {3, 1'000'003}, {1}, false},
                                         Case{"all", {1'009, 1'013}, {0, 1}, false},
                                         Case{"one_after_another", {300'007, 3}, {0}, true},
                                         Case{"short", {37, 1'000}, {1}, false}),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(LongSum, OfConstantsIsNearlyExact) {
  const Tensor tenth = Tensor::full({1'000'000, 3}, 0.1).contiguous();
  const double exact = 1e6 * static_cast<double>(0.1f);
  for (float sum : tenth.sum(0).to_vector<float>())
    EXPECT_NEAR(static_cast<double>(sum), exact, exact * 5e-6);
}

TEST(LongSum, KeepsInfinitiesAndNaN) {
  std::vector<float> values(50'000 * 4, 1.0f);
  values[49'999 * 4 + 1] = INFINITY;
  values[123 * 4 + 2] = NAN;
  values[17 * 4 + 3] = INFINITY;
  values[40'000 * 4 + 3] = -INFINITY;
  const auto sums = Tensor::from(values, {50'000, 4}).sum(0).to_vector<float>();
  EXPECT_EQ(sums[0], 50'000.0f);
  EXPECT_EQ(sums[1], INFINITY);
  EXPECT_TRUE(std::isnan(sums[2]));
  EXPECT_TRUE(std::isnan(sums[3]));
}

// Along the last axis, for one row and for rows split over threads, and along another axis.
TEST(BlockedSummation, RunningOnesAreAsExact) {
  constexpr int64_t kRows = 64, kColumns = 20'011;
  const std::vector<float> values = positives(kRows * kColumns);
  for (const Shape& shape :
       {Shape{1, kRows * kColumns}, Shape{kRows, kColumns}, Shape{1, kColumns, kRows}}) {
    const std::vector<float> sums = Tensor::from(values, shape).cumsum(1).to_vector<float>();
    const auto length = static_cast<size_t>(shape[1]),
               inner = static_cast<size_t>(shape.size() == 3 ? shape[2] : 1);
    double worst = 0;
    for (size_t row = 0; row < values.size() / length; ++row) {
      double sum = 0;
      for (size_t i = 0; i < length; ++i) {
        const size_t at = row / inner * length * inner + i * inner + row % inner;
        sum += static_cast<double>(values[at]);
        worst = std::max(worst, std::abs(static_cast<double>(sums[at]) / sum - 1));
      }
    }
    EXPECT_LT(worst, 3e-6) << shape.size();
  }
}

}  // namespace
}  // namespace plugrad
