#include "engine/recent_cache.h"

#include <gtest/gtest.h>

namespace plugrad::engine {
namespace {

Hash128 key(uint64_t number) {
  return {number, number * 3};
}

TEST(RecentCache, DropsWhatWasNotUsedForAGeneration) {
  RecentCache<int> cache(4);
  for (int i = 0; i < 100; ++i) {
    cache.insert(key(static_cast<uint64_t>(i)), i);
    EXPECT_NE(cache.find(key(0)), nullptr) << "used every time, at " << i;
    EXPECT_LE(cache.size(), 9u);
  }
  EXPECT_EQ(*cache.find(key(0)), 0);
  EXPECT_EQ(*cache.find(key(99)), 99);
  EXPECT_EQ(*cache.find(key(96)), 96) << "one of the last four";
  EXPECT_EQ(cache.find(key(50)), nullptr);
}

TEST(RecentCache, AnInsertReplaces) {
  RecentCache<int> cache(4);
  cache.insert(key(1), 1);
  cache.insert(key(1), 2);
  EXPECT_EQ(*cache.find(key(1)), 2);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
}

}  // namespace
}  // namespace plugrad::engine
