#include "plugrad/sdk/private_arrays.h"

#include <gtest/gtest.h>

namespace plugrad::sdk {
namespace {

constexpr uint64_t kKiB = 1024;

TEST(PrivateArrays, AreHalfOfTheSecondCache) {
  EXPECT_EQ(private_bytes_of_cpu(0), 128 * kKiB);
  EXPECT_EQ(private_bytes_of_cpu(512 * kKiB), 256 * kKiB);
  EXPECT_EQ(private_bytes_of_cpu(1024 * kKiB), 512 * kKiB);
}

TEST(PrivateArrays, OfLargeCachesFitTheStack) {
  for (uint64_t cache = 256 * kKiB; cache <= 65536 * kKiB; cache *= 2)
    EXPECT_LE(4 * private_bytes_of_cpu(cache), kMostPrivateBytes) << cache;
}

}  // namespace
}  // namespace plugrad::sdk
