// Integers with full-width constants, and operations on them, on every device.
#include <gtest/gtest.h>

#include "devices/at_hand.h"
#include "plugrad/tensor.h"

using namespace plugrad;

namespace {

constexpr uint64_t kMost = UINT64_MAX;

Tensor words_on(const std::string& device, const std::vector<uint64_t>& values) {
  return Tensor::from_bytes(std::as_bytes(std::span(values)), {static_cast<int64_t>(values.size())},
                            DType::U64, device);
}

}  // namespace

TEST(Integers, OfSixtyFourBitsWrapOnEveryDevice) {
  for (const std::string& device : devices_at_hand()) {
    SCOPED_TRACE(device);
    const Tensor x = words_on(device, {0, 1, kMost, 1ull << 63}),
                 y = words_on(device, {1, 3, 2, 1});
    EXPECT_EQ((x - y).to_vector<uint64_t>(),
              (std::vector<uint64_t>{kMost, kMost - 1, kMost - 2, (1ull << 63) - 1}));
    EXPECT_EQ((-x).to_vector<uint64_t>(), (std::vector<uint64_t>{0, kMost, 1, 1ull << 63}));
    EXPECT_EQ(x.min().item<uint64_t>(), 0u);
    EXPECT_EQ(x.max().item<uint64_t>(), kMost);
  }
}

// Sorts by integers that are made of the doubles' bits.
TEST(Integers, SortDoublesOnEveryDevice) {
  const std::vector<double> values = {2.5, -1e300, 0.0, 1e-300, -3.25, 1e300};
  for (const std::string& device : devices_at_hand()) {
    SCOPED_TRACE(device);
    const Tensor x = Tensor::from_bytes(std::as_bytes(std::span(values)), {6}, DType::F64, device);
    EXPECT_EQ(x.sort(0).first.to_vector<double>(),
              (std::vector<double>{-1e300, -3.25, 0.0, 1e-300, 2.5, 1e300}));
  }
}
