// Every device finds each maximum of values that its kernels may round differently: indices are in
// range, and gradients are finite.
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
  for (const Tensor& x : computed()) {
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

TEST_P(Maxima, TakeTheGradient) {
  Tensor a = Tensor::randn({kRows, kColumns}, DType::F32, GetParam()).realize();
  a.requires_grad_();
  const Tensor b = Tensor::randn({kRows, kColumns}, DType::F32, GetParam()).realize();
  const Tensor highest = (a * b + 0.3).max(1);
  highest.realize();  // the gradient computes the elements again, in another kernel
  const auto slopes = gradient(highest.sum(), {a})[0].to_vector<float>();
  const auto factors = b.to_vector<float>();
  for (size_t row = 0; row < kRows; ++row) {
    int found = 0;
    for (size_t i = row * kColumns; i < (row + 1) * kColumns; ++i) {
      if (slopes[i] == 0) continue;
      ++found;
      ASSERT_EQ(slopes[i], factors[i]) << row;
    }
    ASSERT_EQ(found, 1) << row;
  }
}

TEST_P(Maxima, OfWindowsTakeTheGradient) {
  Tensor a = Tensor::randn({1, 2, 12, 12}, DType::F32, GetParam()).realize();
  a.requires_grad_();
  const Tensor b = Tensor::randn({1, 2, 12, 12}, DType::F32, GetParam()).realize();
  const Tensor highest = max_pool2d(a * b + 0.3, 3);
  highest.realize();
  const auto [values, places] = max_pool2d_with_places(a * b + 0.3, 3);
  for (const int64_t place : places.to_vector<int64_t>()) {
    ASSERT_GE(place, 0);
    ASSERT_LT(place, 144);
  }
  const auto slopes = gradient(highest.sum(), {a})[0].to_vector<float>();
  const auto factors = b.to_vector<float>();
  EXPECT_EQ(std::ranges::count_if(slopes, [](float x) { return x != 0; }), 2 * 4 * 4);
  for (size_t i = 0; i < slopes.size(); ++i) ASSERT_EQ(slopes[i], slopes[i] == 0 ? 0 : factors[i]);
}

INSTANTIATE_TEST_SUITE_P(Devices, Maxima, testing::ValuesIn(devices_at_hand()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace plugrad
