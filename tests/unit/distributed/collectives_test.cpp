// Collectives of 2 and 4 ranks against values worked out here.
#include "elements.h"
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

// Every dtype has its own size: 3 elements a rank, 5 of the last.
TEST(Collectives, AllGatherMovesEveryDtype) {
  std::vector<std::int64_t> counts(count_of_ranks(), 3);
  counts.back() = 5;
  for (const DType dtype : kDTypes) {
    std::vector<double> expected, own;
    for (std::uint32_t r = 0; r < count_of_ranks(); ++r)
      for (std::int64_t i = 0; i < counts[r]; ++i) {
        expected.push_back(static_cast<double>((r + i) % 2));
        if (r == self()) own.push_back(expected.back());
      }
    const std::vector<std::byte> part = stored(dtype, own);
    std::vector<std::byte> all(expected.size() * size_of(dtype));
    backend()->run({.kind = Kind::AllGather,
                    .dtype = dtype,
                    .send = part.data(),
                    .receive = all.data(),
                    .counts = counts,
                    .group = all_ranks(),
                    .tensor = "parts"});
    EXPECT_EQ(loaded(dtype, all), expected) << name_of(dtype);
  }
}

// Rank r sends r + s elements 100 r + s to rank s; so rank 0 sends itself none.
TEST(Collectives, AllToAllExchangesUnevenParts) {
  const std::uint32_t ranks = count_of_ranks();
  std::vector<std::int32_t> sent, expected;
  std::vector<std::int64_t> to(ranks), from(ranks);
  for (std::uint32_t other = 0; other < ranks; ++other) {
    to[other] = from[other] = self() + other;
    sent.insert(sent.end(), self() + other, static_cast<std::int32_t>(100 * self() + other));
    expected.insert(expected.end(), self() + other,
                    static_cast<std::int32_t>(100 * other + self()));
  }
  std::vector<std::int32_t> received(expected.size(), -1);
  backend()->run({.kind = Kind::AllToAll,
                  .dtype = DType::I32,
                  .send = bytes(sent),
                  .receive = bytes(received),
                  .counts = to,
                  .receive_counts = from,
                  .group = all_ranks(),
                  .tensor = "parts"});
  EXPECT_EQ(received, expected);
}

TEST(Collectives, BroadcastHasTheValuesOfTheRoot) {
  for (std::uint32_t root = 0; root < count_of_ranks(); ++root)
    for (const std::int64_t count : {0, 1, 7, 500001}) {  // the last is sent in parts
      std::vector<std::int32_t> values(static_cast<std::size_t>(count), -1),
          expected(values.size());
      std::iota(expected.begin(), expected.end(), static_cast<std::int32_t>(1000 * root));
      if (self() == root) values = expected;
      backend()->run({.kind = Kind::Broadcast,
                      .dtype = DType::I32,
                      .send = bytes(values),
                      .receive = bytes(values),
                      .counts = {count},
                      .group = all_ranks(),
                      .peer = root,
                      .tensor = "values"});
      EXPECT_EQ(values, expected) << count << " elements from " << root;
    }
}

Request start_send(const std::vector<float>& values, std::uint32_t to, const std::string& tensor) {
  return backend()->start({.kind = Kind::Send,
                           .send = bytes(values),
                           .counts = {static_cast<std::int64_t>(values.size())},
                           .peer = to,
                           .tensor = tensor});
}

Request start_receive(std::vector<float>& values, std::uint32_t from, const std::string& tensor) {
  return backend()->start({.kind = Kind::Receive,
                           .receive = bytes(values),
                           .counts = {static_cast<std::int64_t>(values.size())},
                           .peer = from,
                           .tensor = tensor});
}

// All send before any receives: neither waits for the other.
TEST(Collectives, SendAndReceiveGoRound) {
  const std::uint32_t ranks = count_of_ranks(), next = (self() + 1) % ranks,
                      last = (self() + ranks - 1) % ranks;
  const std::vector<float> first(300000, static_cast<float>(self())), second(3, 0.5f);
  std::vector<float> a(first.size()), b(second.size());
  const Request sent[] = {start_send(first, next, "first"), start_send(second, next, "second")};
  const Request received[] = {start_receive(a, last, "first"), start_receive(b, last, "second")};
  for (const Request& request : received) backend()->wait(request);
  for (const Request& request : sent) backend()->wait(request);
  EXPECT_EQ(a, std::vector<float>(first.size(), static_cast<float>(last)));
  EXPECT_EQ(b, second);
}

TEST(Collectives, ManyAreInFlightAtOnce) {
  constexpr int kCalls = 200;
  std::vector<std::vector<std::int64_t>> values(kCalls);
  std::vector<Request> requests;
  for (int i = 0; i < kCalls; ++i) {
    values[i].assign(static_cast<std::size_t>(i * 10), i + self());
    requests.push_back(backend()->start({.kind = Kind::AllReduce,
                                         .dtype = DType::I64,
                                         .send = bytes(values[i]),
                                         .receive = bytes(values[i]),
                                         .counts = {i * 10},
                                         .group = all_ranks(),
                                         .tensor = std::to_string(i)}));
  }
  const std::uint32_t ranks = count_of_ranks();
  for (int i = kCalls - 1; i >= 0; --i) {
    backend()->wait(requests[i]);
    EXPECT_TRUE(backend()->is_done(requests[i]));
    for (std::int64_t value : values[i]) ASSERT_EQ(value, i * ranks + ranks * (ranks - 1) / 2);
  }
}

// The groups of even and of odd ranks, and all: each rank starts them in another order.
TEST(Collectives, GroupsAreIndependent) {
  std::vector<std::uint32_t> mine;
  for (std::uint32_t r = self() % 2; r < count_of_ranks(); r += 2) mine.push_back(r);
  std::vector<float> few(1000, 1), all(1000, 1);
  const auto start = [](std::vector<float>& values, const std::vector<std::uint32_t>& group) {
    return backend()->start({.send = bytes(values),
                             .receive = bytes(values),
                             .counts = {1000},
                             .group = group,
                             .tensor = "ones"});
  };
  Request requests[2];
  for (int i = 0; i < 2; ++i) {
    const bool is_all = (i == 0) == (self() < 2);
    requests[i] = start(is_all ? all : few, is_all ? all_ranks() : mine);
  }
  for (const Request& request : requests) backend()->wait(request);
  EXPECT_EQ(few, std::vector<float>(1000, static_cast<float>(mine.size())));
  EXPECT_EQ(all, std::vector<float>(1000, static_cast<float>(count_of_ranks())));
}

}  // namespace
}  // namespace plugrad::distributed::test
