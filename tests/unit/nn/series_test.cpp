// Curves in bounded memory, axes and their labels.
#include "nn/progress/series.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "nn/progress/axis.h"

using namespace plugrad;

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

TEST(Series, PointsAreExactUntilTheBucketsAreUsedUp) {
  Series series;
  for (int64_t step = 1; step <= 512; ++step)
    series.add(step, static_cast<double>(step), 1.0 / static_cast<double>(step));
  ASSERT_EQ(series.buckets().size(), 512u);
  EXPECT_EQ(series.points_a_bucket(), 1);
  for (const Bucket& bucket : series.buckets()) {
    EXPECT_EQ(bucket.first_step, bucket.last_step);
    EXPECT_EQ(bucket.mean, 1.0 / bucket.step());
    EXPECT_EQ(bucket.lowest, bucket.highest);
  }
}

TEST(Series, MillionsOfPointsKeepTheirExtremesInBoundedMemory) {
  Series series;
  constexpr int64_t kPoints = 3'000'000, kPeak = 1'234'567, kTrough = 2'345'678;
  for (int64_t step = 1; step <= kPoints; ++step)
    series.add(step, 0, step == kPeak ? 99 : step == kTrough ? -99 : 1);
  EXPECT_LE(series.buckets().size(), Series::kMostBuckets);
  EXPECT_GE(series.buckets().size(), Series::kMostBuckets / 2);
  int64_t next = 1, peaks = 0, troughs = 0, points = 0;
  for (const Bucket& bucket : series.buckets()) {
    EXPECT_EQ(bucket.first_step, next);
    next = bucket.last_step + 1;
    points += bucket.points;
    const bool has_peak = bucket.first_step <= kPeak && kPeak <= bucket.last_step;
    const bool has_trough = bucket.first_step <= kTrough && kTrough <= bucket.last_step;
    EXPECT_EQ(bucket.highest, has_peak ? 99 : 1);
    EXPECT_EQ(bucket.lowest, has_trough ? -99 : 1);
    peaks += has_peak;
    troughs += has_trough;
  }
  EXPECT_EQ(points, kPoints);
  EXPECT_EQ(peaks, 1);
  EXPECT_EQ(troughs, 1);
  EXPECT_EQ(series.total().highest, 99);
  EXPECT_EQ(series.total().lowest, -99);
}

TEST(Series, ValuesWithoutAPlaceOnAnAxisAreCountedAndChangeNothing) {
  Series series;
  for (const double value : {2.0, kNan, kInfinity, -kInfinity, 1e301, 4.0}) series.add(1, 0, value);
  const Bucket all = series.total();
  EXPECT_EQ(all.points, 6);
  EXPECT_EQ(all.missing, 4);
  EXPECT_EQ(all.lowest, 2);
  EXPECT_EQ(all.highest, 4);
  EXPECT_EQ(all.mean, 3);
}

TEST(Series, MeansAreWeighted) {
  Series series;
  series.add(1, 1, 100, 1);  // 100 images in 1 s
  series.add(2, 4, 20, 3);   // 60 images in 3 s
  EXPECT_EQ(series.total().mean, 40);
}

TEST(Series, MergingKeepsOrderAndSteps) {
  Series series;
  for (int64_t step = 1; step <= 5; ++step)
    series.add(step, static_cast<double>(step) / 2, static_cast<double>(step));
  const auto merged = merge_buckets(series.buckets(), 3);
  ASSERT_EQ(merged.size(), 3u);
  EXPECT_EQ(merged[1].first_step, 3);
  EXPECT_EQ(merged[1].last_step, 4);
  EXPECT_EQ(merged[1].last_seconds, 2);
  EXPECT_EQ(merged[1].mean, 3.5);
  EXPECT_EQ(merged[2].points, 1);
}

TEST(Axis, LinearAxesEndAtRoundTicks) {
  const Axis axis = linear_axis(0.18, 2.3);
  EXPECT_EQ(axis.ticks, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(axis.position(0), 0);
  EXPECT_EQ(axis.position(1.5), 0.5);
  EXPECT_EQ(axis.position(3), 1);
  EXPECT_EQ(linear_axis(-3, 7).ticks, (std::vector<double>{-5, 0, 5, 10}));
}

TEST(Axis, FlatTinyAndHugeRangesHaveFewTicksAndFinitePositions) {
  const double least = std::numeric_limits<double>::denorm_min();
  for (const auto& [low, high] : std::vector<std::pair<double, double>>{{0, 0},
                                                                        {5, 5},
                                                                        {-5, -5},
                                                                        {1e300, 1e300},
                                                                        {-1e300, 1e300},
                                                                        {0, least},
                                                                        {1e-310, 2e-310},
                                                                        {1, 1 + 1e-15},
                                                                        {-1e-300, 1e300}}) {
    const Axis axis = linear_axis(low, high);
    EXPECT_GE(axis.ticks.size(), 2u) << low << " " << high;
    EXPECT_LE(axis.ticks.size(), 12u) << low << " " << high;
    EXPECT_GE(axis.position(low), -1e-9) << low << " " << high;
    EXPECT_LE(axis.position(high), 1 + 1e-9) << low << " " << high;
  }
}

TEST(Axis, LogarithmicAxesEndAtPowersOfTen) {
  const Axis axis = log_axis(0.03, 200);
  ASSERT_EQ(axis.ticks.size(), 6u);
  EXPECT_NEAR(axis.position(0.01), 0, 1e-12);
  EXPECT_NEAR(axis.position(1), 0.4, 1e-12);
  EXPECT_NEAR(axis.position(1000), 1, 1e-12);
  const Axis wide = log_axis(1e-280, 1e300);
  EXPECT_LE(wide.ticks.size(), 7u);
  EXPECT_NEAR(wide.position(1e10), 0.5, 1e-9);
}

TEST(Axis, StepsAreWholeNumbers) {
  EXPECT_EQ(step_axis(3).ticks, (std::vector<double>{0, 1, 2, 3}));
  EXPECT_EQ(step_axis(120).ticks, (std::vector<double>{0, 50, 100}));
  EXPECT_EQ(step_axis(0).high, 1);
}

TEST(Axis, NumbersAreShort) {
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-0.0), "0");
  EXPECT_EQ(number_text(0.0312), "0.0312");
  EXPECT_EQ(number_text(1500), "1500");
  EXPECT_EQ(number_text(64000), "64k");
  EXPECT_EQ(number_text(999999), "1M");
  EXPECT_EQ(number_text(-1.25e6), "-1.25M");
  EXPECT_EQ(number_text(1e-7), "1e-07");
  EXPECT_EQ(number_text(1e300), "1e+300");
  EXPECT_EQ(number_text(kNan), "nan");
}

TEST(Axis, TimesHaveHoursWhenNeeded) {
  EXPECT_EQ(elapsed_text(7.4), "0:07");
  EXPECT_EQ(elapsed_text(754), "12:34");
  EXPECT_EQ(elapsed_text(3723), "1:02:03");
}
