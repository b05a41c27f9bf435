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

// Amounts that the kernel itself widens, and amounts that shift all bits out.
TEST(Integers, ShiftOnEveryDevice) {
  const std::vector<int64_t> values = {-8, int64_t{1} << 40, -(int64_t{1} << 40) + 5, 7, 9, -9};
  const std::vector<int32_t> amounts = {1, 3, 33, 2, 64, 70};
  for (const std::string& device : devices_at_hand()) {
    SCOPED_TRACE(device);
    const Tensor x = Tensor::from(values, device),
                 y = Tensor::from(amounts, device).cast(DType::I64);
    EXPECT_EQ((x >> y).to_vector<int64_t>(),
              (std::vector<int64_t>{-4, int64_t{1} << 37, -128, 1, 0, -1}));
    EXPECT_EQ((x << y).to_vector<int64_t>(),
              (std::vector<int64_t>{-16, int64_t{1} << 43, int64_t{5} << 33, 28, 0, 0}));
    const Tensor bits = x.bitcast(DType::U64);
    EXPECT_EQ((bits >> y.cast(DType::U64)).to_vector<uint64_t>(),
              (std::vector<uint64_t>{(1ull << 63) - 4, 1ull << 37, (1ull << 31) - 128, 1, 0, 0}));
  }
}
