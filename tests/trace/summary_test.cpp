// Times that overlap count once, and lanes nest.
#include "trace/summary.h"

#include <gtest/gtest.h>

#include "trace/lanes.h"

namespace plugrad::tools::trace {
namespace {

TEST(TraceSummary, UnitedIntervalsCountEachMomentOnce) {
  const Intervals one = united({{10, 20}, {0, 5}, {15, 30}, {5, 6}, {12, 13}});
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].end, 6);
  EXPECT_EQ(length(one), 26);
  EXPECT_EQ(length(united({})), 0);
}

Trace two_tracks() {
  Trace trace;
  trace.devices.resize(1);
  trace.tracks = {{TrackKind::Queue, 0, "queue"}, {TrackKind::Thread, kNone, "main"}};
  trace.kernels.resize(1);
  return trace;
}

void launch(Trace& trace, int64_t start, int64_t duration) {
  trace.launches.track.push_back(0);
  trace.launches.kernel.push_back(0);
  trace.launches.start.push_back(start);
  trace.launches.duration.push_back(duration);
  trace.launches.submit.push_back(0);
}

TEST(TraceSummary, WorkOfADeviceIsBusyOnceAndDroppedEventsMoveTheBeginning) {
  Trace trace = two_tracks();
  launch(trace, 100, 100);
  launch(trace, 150, 100);
  EXPECT_EQ(summarise(trace).wall_ns(), 150);
  trace.end = End{.dropped = 0, .time_ns = 1000};
  const Summary whole = summarise(trace);
  EXPECT_EQ(whole.wall_ns(), 1000);
  EXPECT_EQ(whole.devices[0].busy_ns, 150);
  EXPECT_EQ(whole.devices[0].launch_ns, 200);
  EXPECT_EQ(whole.of(Part::Program), 850);
  trace.end->dropped = 1;
  EXPECT_EQ(summarise(trace).wall_ns(), 900);
}

void wait_for_collective(Trace& trace, int64_t start, int64_t duration) {
  trace.waits.track.push_back(1);
  trace.waits.device.push_back(kNone);
  trace.waits.start.push_back(start);
  trace.waits.duration.push_back(duration);
  Collectives& all = trace.collectives;
  all.track.push_back(2);
  all.start.push_back(start - 50);
  all.duration.push_back(duration + 40);
  all.kind.push_back(CollectiveKind::AllGather);
  all.bytes.push_back(1000);
  all.values.push_back(2);
  all.waited.push_back(duration);
}

TEST(TraceSummary, OnlyTheWaitsForRanksThatNoDeviceHidesAreExposed) {
  Trace trace = two_tracks();
  trace.tracks.push_back({TrackKind::Collectives, kNone, "collectives"});
  launch(trace, 0, 100);
  wait_for_collective(trace, 60, 100);
  wait_for_collective(trace, 300, 20);
  const Summary summary = summarise(trace);
  EXPECT_EQ(summary.of(Part::Collective), 60 + 20);  // 40 of the first are beside the launch
  EXPECT_EQ(summary.of(Part::Wait), 0);
  EXPECT_EQ(summary.waits, 0);
  EXPECT_EQ(summary.wall_ns(), 320);
  ASSERT_EQ(summary.collectives.size(), 1u);
  EXPECT_EQ(summary.collectives[0].count, 2);
  EXPECT_EQ(summary.collectives[0].values, 4);
  EXPECT_EQ(summary.collectives[0].bytes, 2000);
  EXPECT_EQ(summary.collectives[0].total_ns, 140 + 60);
  EXPECT_EQ(summary.collectives[0].waited_ns, 120);
}

TEST(TraceLanes, CollectivesThatOverlapHaveSeveralLanesAndNames) {
  Trace trace = two_tracks();
  trace.tracks.push_back({TrackKind::Collectives, kNone, "collectives"});
  wait_for_collective(trace, 100, 50);
  wait_for_collective(trace, 120, 100);
  const std::vector<Lane> lanes = make_lanes(trace);
  ASSERT_EQ(lanes.size(), 4u);
  EXPECT_EQ(lanes[2].name, "collectives");
  EXPECT_EQ(lanes[3].name, "collectives (2)");
  EXPECT_EQ(slice_name(trace, lanes[2].slices[0]), "all-gather");
  EXPECT_STREQ(slice_category(trace, lanes[2].slices[0]), "collective");
  EXPECT_EQ(slice_name(trace, lanes[0].slices[0]), "wait for a collective");
  EXPECT_LT(slice_key(trace, lanes[3].slices[0]), slice_key_count(trace));
}

TEST(TraceSummary, LaunchesBoundOnlyWhereTheirCostIsKnown) {
  Trace trace = two_tracks();
  trace.kernels[0].flops = 100;
  trace.kernels[0].bytes = 10;
  launch(trace, 0, 1000);
  EXPECT_EQ(summarise(trace).kernels[0].bound, Bound::Unknown);
  trace.devices[0].peak_gflops = 1;
  EXPECT_EQ(summarise(trace).kernels[0].bound, Bound::Compute);
  trace.devices[0].launch_ns = 600;
  EXPECT_EQ(summarise(trace).kernels[0].bound, Bound::Launch);
}

TEST(TraceLanes, WalkClosesWhatItOpens) {
  Trace trace = two_tracks();
  launch(trace, 0, 100);
  launch(trace, 20, 30);
  launch(trace, 50, 0);
  launch(trace, 50, 60);
  launch(trace, 110, 10);
  const std::vector<Lane> lanes = make_lanes(trace);
  ASSERT_EQ(lanes.size(), 2u);
  size_t slices = 0;
  for (const Lane& lane : lanes) {
    std::vector<const Slice*> open;
    int64_t time = 0;
    walk(
        lane,
        [&](const Slice& slice) {
          EXPECT_GE(slice.start, time);
          time = slice.start;
          open.push_back(&slice);
          ++slices;
        },
        [&](const Slice& slice) {
          ASSERT_FALSE(open.empty());
          EXPECT_EQ(open.back(), &slice);
          EXPECT_GE(slice.end, time);
          time = slice.end;
          open.pop_back();
        });
    EXPECT_TRUE(open.empty());
  }
  EXPECT_EQ(slices, 5u);
}

}  // namespace
}  // namespace plugrad::tools::trace
