// Many threads make, realise and read tensors concurrently.
#include <thread>

#include "e2e/fixture.h"

using namespace plugrad;

namespace {

class Threads : public e2e::SessionTest {};

TEST_F(Threads, EachThreadSeesItsOwnResults) {
  const State shared = host({8}, {0, 1, 2, 3, 4, 5, 6, 7});
  std::vector<int> wrong(4);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 60; ++i) {
        const float own = static_cast<float>(t * 100 + i);
        const State mine = host({8}, std::vector<float>(8, own));
        State result = add(mul(shared, mine), mine);
        const State total = sum(result, {0});
        wrong[static_cast<size_t>(t)] += values(total)[0] != 36 * own;
        result = add(result, shared);
        wrong[static_cast<size_t>(t)] += values(result)[7] != 8 * own + 7;
        if (i % 16 == t) session.collect();
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}  // namespace
