// Peers are restricted to the same instruction set as plugrad; a peer that cannot be restricted is
// compared only if all instructions are allowed.
#include "bench/isa.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/settings.h"
#include "bench/names.h"
#include "bench/peers/peers.h"

namespace plugrad::bench {
namespace {

// A peer that prints `greeting` and then waits.
std::unique_ptr<PeerProcess> peer_saying(const std::string& greeting) {
  return std::make_unique<PeerProcess>(
      std::vector<std::string>{"sh", "-c", "echo '" + greeting + "'; read line"},
      std::vector<std::string>{});
}

const Isa& isa_named(const std::string& name) {
  for (const Isa& isa : isas())
    if (name == isa.name) return isa;
  throw std::invalid_argument(name);
}

template <class Rows>
std::vector<std::string> names_of(const Rows& rows) {
  std::vector<std::string> names;
  for (const auto& row : rows) names.emplace_back(row.name);
  return names;
}

TEST(BenchNames, AreThoseOfTheTables) {
  EXPECT_THAT(names_of(isas()), ::testing::ElementsAreArray(kIsaNames));
  EXPECT_THAT(names_of(peer_programs()), ::testing::ElementsAreArray(kPeerNames));
}

TEST(BenchIsa, FollowsTheSetting) {
  const SettingScope unset([](Settings& s) { s.cpu_target = ""; });
  EXPECT_STREQ(chosen_isa().name, "native");
  for (const Isa& isa : isas()) {
    const SettingScope set([&](Settings& s) { s.cpu_target = isa.target; });
    EXPECT_STREQ(chosen_isa().name, isa.name);
  }
}

TEST(BenchIsa, V3_SetsEachLibrarysVariable) {
  EXPECT_THAT(
      isa_named("v3").environment,
      ::testing::UnorderedElementsAre("ONEDNN_MAX_CPU_ISA=AVX2", "ATEN_CPU_CAPABILITY=avx2",
                                      "OPENBLAS_CORETYPE=Haswell", "MKL_ENABLE_INSTRUCTIONS=AVX2"));
  EXPECT_TRUE(isa_named("native").environment.empty());
}

TEST(BenchIsa, APeerCountsWhereItSaysThatItKeepsToTheLevel) {
  const auto peer = peer_saying(R"({"found": true, "isa": "Haswell", "level": 3})");
  ASSERT_TRUE(peer->found());
  EXPECT_EQ(peer->isa().name, "Haswell");
  EXPECT_TRUE(peer->keeps_to(isa_named("native")));
  EXPECT_TRUE(peer->keeps_to(isa_named("v4")));
  EXPECT_TRUE(peer->keeps_to(isa_named("v3")));
  EXPECT_FALSE(peer->keeps_to(isa_named("v2")));
}

TEST(BenchIsa, APeerThatDoesNotTell_CountsWithAllInstructionsOnly) {
  const auto peer = peer_saying(R"({"found": true})");
  ASSERT_TRUE(peer->found());
  EXPECT_TRUE(peer->keeps_to(isa_named("native")));
  EXPECT_FALSE(peer->keeps_to(isa_named("v4")));
}

TEST(BenchIsa, ALibraryThatIsUnknown_DoesNotTell) {
  EXPECT_EQ(isa_of_library("abacus", nullptr).level, kAnyLevel);
}

}  // namespace
}  // namespace plugrad::bench
