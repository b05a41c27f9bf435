// Collectives of 2 and 4 ranks against values worked out here.
#include "ranks.h"

namespace plugrad::distributed::test {
namespace {

TEST(Collectives, AllReduceAddsTheContributionsOfAllRanks) {
  const auto ranks = static_cast<int>(count_of_ranks());
  for (const int count : {0, 1, 3, 1000, 700001}) {
    std::vector<int> values(static_cast<std::size_t>(count)), sums(values.size(), -1);
    for (int i = 0; i < count; ++i) values[i] = i + 10 * static_cast<int>(self());
    backend()->run({.kind = Kind::AllReduce,
                    .dtype = DType::I32,
                    .send = bytes(values),
                    .receive = bytes(sums),
                    .counts = {count},
                    .group = all_ranks(),
                    .tensor = "values"});
    // The ranks add 0, 10, 20, … to i.
    for (int i = 0; i < count; ++i)
      ASSERT_EQ(sums[i], ranks * i + 10 * ranks * (ranks - 1) / 2) << count << " elements";
  }
}

TEST(Collectives, AllReduceMayOverwriteWhatItSends) {
  std::vector<float> values(300000);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i) * static_cast<float>(self() + 1);
  backend()->run({.kind = Kind::AllReduce,
                  .send = bytes(values),
                  .receive = bytes(values),
                  .counts = {300000},
                  .group = all_ranks(),
                  .tensor = "values"});
  const auto n = static_cast<float>(count_of_ranks());
  for (std::size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(values[i], static_cast<float>(i) * n * (n + 1) / 2);
}

// Rank r contributes r + 1 elements, or none.
TEST(Collectives, AllGatherTakesUnevenParts) {
  const std::uint32_t ranks = count_of_ranks();
  std::vector<std::int64_t> counts(ranks);
  std::vector<std::int16_t> expected;
  for (std::uint32_t r = 0; r < ranks; ++r) {
    counts[r] = r == 1 ? 0 : r + 1;
    for (std::int64_t i = 0; i < counts[r]; ++i)
      expected.push_back(static_cast<std::int16_t>(100 * r + i));
  }
  std::vector<std::int16_t> own(static_cast<std::size_t>(counts[self()]));
  for (std::size_t i = 0; i < own.size(); ++i) own[i] = static_cast<std::int16_t>(100 * self() + i);
  std::vector<std::int16_t> all(expected.size(), -1);
  backend()->run({.kind = Kind::AllGather,
                  .dtype = DType::I16,
                  .send = bytes(own),
                  .receive = bytes(all),
                  .counts = counts,
                  .group = all_ranks(),
                  .tensor = "parts"});
  EXPECT_EQ(all, expected);
}

TEST(Collectives, ReduceScatterGivesEachRankItsPart) {
  const std::uint32_t ranks = count_of_ranks();
  std::vector<std::int64_t> counts(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) counts[r] = r == 0 ? 0 : 100000 * r + 1;
  std::vector<double> values;
  std::size_t first = 0;  // of this rank's part
  for (std::uint32_t r = 0; r < ranks; ++r) {
    if (r == self()) first = values.size();
    for (std::int64_t i = 0; i < counts[r]; ++i)
      values.push_back(static_cast<double>(values.size()) + 0.5 * self());
  }
  std::vector<double> part(static_cast<std::size_t>(counts[self()]), -1);
  backend()->run({.kind = Kind::ReduceScatter,
                  .dtype = DType::F64,
                  .send = bytes(values),
                  .receive = bytes(part),
                  .counts = counts,
                  .group = all_ranks(),
                  .tensor = "values"});
  for (std::size_t i = 0; i < part.size(); ++i)
    ASSERT_EQ(part[i], ranks * static_cast<double>(first + i) + 0.5 * ranks * (ranks - 1) / 2);
}

}  // namespace
}  // namespace plugrad::distributed::test
