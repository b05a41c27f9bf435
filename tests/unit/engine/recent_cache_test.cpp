#include "engine/recent_cache.h"

#include <gtest/gtest.h>

namespace plugrad::engine {
namespace {

Hash128 key(uint64_t number) {
  return {number, number * 3};
}

TEST(RecentCache, DropsWhatWasNotUsedForAGeneration) {
  RecentCache<int> cache({4, 4, 100});
  for (int i = 0; i < 100; ++i) {
    cache.insert(key(static_cast<uint64_t>(i)), i, 1);
    EXPECT_NE(cache.find(key(0)), nullptr) << "used every time, at " << i;
    EXPECT_LE(cache.size(), 9u);
  }
  EXPECT_EQ(*cache.find(key(0)), 0);
  EXPECT_EQ(*cache.find(key(99)), 99);
  EXPECT_EQ(*cache.find(key(96)), 96) << "one of the last four";
  EXPECT_EQ(cache.find(key(50)), nullptr);
}

TEST(RecentCache, AnInsertReplaces) {
  RecentCache<int> cache({4, 4, 100});
  cache.insert(key(1), 1, 1);
  cache.insert(key(1), 2, 1);
  EXPECT_EQ(*cache.find(key(1)), 2);
  cache.clear();
  EXPECT_EQ(cache.size(), 0u);
}

TEST(RecentCache, HoldsFewerOfLargeValuesButSomeOfAnySize) {
  RecentCache<int> cache({100, 3, 50});
  for (int i = 0; i < 200; ++i) {
    cache.insert(key(static_cast<uint64_t>(i)), i, 10);
    EXPECT_LE(cache.size(), 10u) << "two generations of five";
    EXPECT_LE(cache.size_bytes(), 100u);
  }
  EXPECT_GE(cache.size(), 5u);
  for (int i = 200; i < 300; ++i) {
    cache.insert(key(static_cast<uint64_t>(i)), i, 1000);
    EXPECT_LE(cache.size(), 10u);
  }
  for (uint64_t last : {299, 298, 297}) EXPECT_NE(cache.find(key(last)), nullptr) << last;
  EXPECT_LE(cache.size(), 6u) << "two generations of three";
}

}  // namespace
}  // namespace plugrad::engine
