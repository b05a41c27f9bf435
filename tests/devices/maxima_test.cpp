// Every device finds each maximum of values that its kernels may round differently: indices are in
// range.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "devices/at_hand.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

class Maxima : public testing::TestWithParam<std::string> {
 protected:
  static constexpr int64_t kRows = 96, kColumns = 37;

  /// Sums of products, and functions that devices approximate.
  std::vector<Tensor> computed() const {
    Tensor::manual_seed(3);
    const auto noise = [&] {
      return Tensor::randn({kRows, kColumns}, DType::F32, GetParam()).realize();
    };
    const Tensor a = noise(), b = noise(), c = noise();
    return {a * b + c, (a * 0.7 + b).exp() * c - a, (a * b).sin() + a * c,
            where(a * b + c > 0, a * b + c, 0.0)};
  }
};

TEST_P(Maxima, HaveAnIndexInRange) {
  const auto kernels = [](const Tensor& x) { return x.argmax(1).schedule().size(); };
  const size_t of_stored =
      kernels(Tensor::randn({kRows, kColumns}, DType::F32, GetParam()).realize());
  const std::vector<Tensor> all_computed = computed();
  for (const Tensor& x : all_computed)  // also where no device at hand rounds differently
    EXPECT_GT(kernels(x), of_stored) << "what is compared is stored once";
  for (const Tensor& x : all_computed) {
    const auto highest = x.argmax(1).to_vector<int>(), lowest = x.argmin(1).to_vector<int>();
    const auto order = x.argsort(1).to_vector<int>();
    const auto all = x.realize().to_vector<float>();
    for (size_t row = 0; row < kRows; ++row) {
      const auto values = std::span(all).subspan(row * kColumns, kColumns);
      ASSERT_EQ(highest[row], std::ranges::max_element(values) - values.begin()) << row;
      ASSERT_EQ(lowest[row], std::ranges::min_element(values) - values.begin()) << row;
      std::vector<int> places(order.begin() + static_cast<int64_t>(row) * kColumns,
                              order.begin() + static_cast<int64_t>(row + 1) * kColumns);
      std::ranges::sort(places);
      for (int i = 0; i < kColumns; ++i) ASSERT_EQ(places[static_cast<size_t>(i)], i);
    }
  }
}

TEST_P(Maxima, OfWindowsHaveAPlaceInRange) {
  const Tensor a = Tensor::randn({1, 2, 12, 12}, DType::F32, GetParam()).realize();
  const Tensor b = Tensor::randn({1, 2, 12, 12}, DType::F32, GetParam()).realize();
  const Tensor image = a * b + 0.3;
  const auto [values, places] = max_pool2d_with_places(image, 3);
  const auto highest = values.to_vector<float>(), all = image.to_vector<float>();
  const auto at = places.to_vector<int64_t>();
  for (size_t i = 0; i < at.size(); ++i) {
    ASSERT_TRUE(at[i] >= 0 && at[i] < 144) << at[i];
    EXPECT_FLOAT_EQ(all[i / 16 * 144 + static_cast<size_t>(at[i])], highest[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Maxima, testing::ValuesIn(devices_at_hand()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace plugrad
