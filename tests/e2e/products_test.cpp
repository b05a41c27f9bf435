// Products of square matrices whose panels are about as large as the L2 cache, with small integers:
// every sum is exact.
#include <gtest/gtest.h>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

int64_t element(int64_t row, int64_t column) {
  return (row * 7 + column * 3) % 5 - 2;
}

TEST(Products, OfMatricesAsLargeAsACache) {
  for (const int64_t side : {511, 600, 737, 768, 769, 1025}) {
    std::vector<float> values;
    for (int64_t i = 0; i < side * side; ++i)
      values.push_back(static_cast<float>(element(i / side, i % side)));
    const Tensor x = Tensor::from(values, {side, side});
    const std::vector<float> product = matmul(x, x).to_vector<float>();
    for (int64_t place = 0; place < side * side; place += side * side / 50) {
      const int64_t row = place / side, column = place % side;
      int64_t expected = 0;
      for (int64_t k = 0; k < side; ++k) expected += element(row, k) * element(k, column);
      EXPECT_EQ(product[static_cast<size_t>(place)], static_cast<float>(expected))
          << side << " at " << row << ", " << column;
    }
  }
}

}  // namespace
}  // namespace plugrad
