#include "scale/overlap.h"

#include <gtest/gtest.h>

namespace plugrad::tools::scale {
namespace {

TEST(Overlap, KernelsThatDoNotNeedACollectiveRunBesideIt) {
  // kernel 0, its all-reduce 1, kernels 2 and 3; 4 reads the sum.
  const std::vector<TimedStep> steps = {
      {1, false, {}}, {5, true, {0}}, {2, false, {}}, {2, false, {2}}, {1, false, {1}}};
  EXPECT_EQ(overlapped_seconds(steps), 7);  // 0..1, 1..6 beside 1..5, 6..7
}

TEST(Overlap, WithoutOtherKernelsACollectiveIsExposed) {
  EXPECT_EQ(overlapped_seconds({{1, false, {}}, {5, true, {0}}, {1, false, {1}}}), 7);
}

TEST(Overlap, CollectivesUseOneLink) {
  const std::vector<TimedStep> steps = {
      {1, false, {}}, {1, false, {}}, {3, true, {0}}, {3, true, {1}}};
  EXPECT_EQ(overlapped_seconds(steps), 7);  // 1..4, 4..7
  EXPECT_EQ(ordered_seconds(steps), 8);     // 2..5, 5..8
}

TEST(Overlap, TheFirstKernelOfThePlanThatCanStartGoesFirst) {
  // 1 waits for the collective 0; 2 does not.
  const std::vector<TimedStep> steps = {
      {4, true, {}}, {1, false, {0}}, {2, false, {}}, {1, true, {1}}};
  EXPECT_EQ(overlapped_seconds(steps), 6);
  EXPECT_EQ(ordered_seconds(steps), 8);  // 0..4, 4..5, 5..7, 7..8
}

TEST(Overlap, NothingTakesNoTime) {
  EXPECT_EQ(overlapped_seconds({}), 0);
}

}  // namespace
}  // namespace plugrad::tools::scale
