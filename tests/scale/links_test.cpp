// Times of collectives, computed by hand.
#include "scale/links.h"

#include <gtest/gtest.h>

#include <numeric>

namespace plugrad::tools::scale {
namespace {

Machine machine(Algorithm algorithm) {
  Machine made;
  made.nodes = 4;
  made.devices_per_node = 4;
  made.link = {.bytes_per_second = 1e9, .latency_seconds = 1e-6, .algorithm = algorithm};
  made.network = {.bytes_per_second = 4e8, .latency_seconds = 1e-5, .algorithm = algorithm};
  return made;
}

std::vector<int64_t> ranks(int64_t count, int64_t stride = 1) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) all[static_cast<size_t>(i)] = i * stride;
  return all;
}

TEST(Links, ARingSendsOneMessageLessThanItHasMembers) {
  // 3 messages of 1 us, and 3/4 of 4 MB at 1 GB/s: 3 ms; an all-reduce has two rounds.
  const Machine m = machine(Algorithm::Ring);
  EXPECT_DOUBLE_EQ(collective_seconds(m, CollectiveKind::AllReduce, 4e6, ranks(4), 4),
                   2 * (3e-6 + 3e-3));
  for (const auto kind :
       {CollectiveKind::ReduceScatter, CollectiveKind::AllGather, CollectiveKind::AllToAll})
    EXPECT_DOUBLE_EQ(collective_seconds(m, kind, 4e6, ranks(4), 4),
                     (kind == CollectiveKind::AllToAll ? 1e-6 : 3e-6) + 3e-3);
}

TEST(Links, DirectMessagesAreOnTheirWayTogether) {
  EXPECT_DOUBLE_EQ(
      collective_seconds(machine(Algorithm::Direct), CollectiveKind::AllReduce, 4e6, ranks(4), 4),
      2 * (1e-6 + 3e-3));
}

TEST(Links, ARingOverNodesIsAsSlowAsItsSlowestLink) {
  // 15 messages, of which 3 are between nodes; 15/16 of 4 MB over the network of a node, which four
  // rings share that each have a quarter of it: 400 MB/s.
  const Machine m = machine(Algorithm::Ring);
  EXPECT_DOUBLE_EQ(collective_seconds(m, CollectiveKind::AllReduce, 4e6, ranks(16), 16),
                   2 * (12e-6 + 3e-5 + 15.0 / 16 * 4e6 / 4e8));
}

TEST(Links, AFastNetworkIsAsFastAsTheLinksOfANode) {
  Machine m = machine(Algorithm::Ring);
  m.network.bytes_per_second = 1e12;
  EXPECT_DOUBLE_EQ(collective_seconds(m, CollectiveKind::ReduceScatter, 4e6, ranks(16), 16),
                   12e-6 + 3e-5 + 15.0 / 16 * 4e6 / 1e9);
}

TEST(Links, DirectMessagesToOtherNodesShareTheNetwork) {
  // Each member sends 12/16 of 4 MB to other nodes, with a quarter of 400 MB/s: 30 ms, during which
  // 3/16 reach the members of its node.
  const Machine m = machine(Algorithm::Direct);
  EXPECT_DOUBLE_EQ(collective_seconds(m, CollectiveKind::AllGather, 4e6, ranks(16), 16),
                   1e-5 + 12.0 / 16 * 4e6 / 1e8);
}

TEST(Links, OneDeviceOfEachNodeUsesTheNetworkAlone) {
  // All four devices of a node do the same: each has a quarter of the network.
  const Machine m = machine(Algorithm::Ring);
  EXPECT_DOUBLE_EQ(collective_seconds(m, CollectiveKind::AllGather, 4e6, ranks(4, 4), 16),
                   3e-5 + 0.75 * 4e6 / 1e8);
}

TEST(Links, OneMemberMovesNothing) {
  EXPECT_EQ(
      collective_seconds(machine(Algorithm::Ring), CollectiveKind::AllReduce, 4e6, ranks(1), 1), 0);
}

}  // namespace
}  // namespace plugrad::tools::scale
