// Every device computes the specified sign of zero results.
#include <gtest/gtest.h>

#include <cmath>

#include "devices/at_hand.h"
#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

class Zeros : public testing::TestWithParam<std::string> {
 protected:
  Tensor input() const {
    Tensor x = Tensor::from<float>({-0.5f, -0.0f, 0.0f, 0.5f, -0.25f}, GetParam());
    return x.realize();
  }
};

// Values with signs, including zeros: "-0 +0.5".
std::string signs(const Tensor& x) {
  std::string text;
  for (float value : x.to_vector<float>())
    text += (text.empty() ? "" : " ") + std::string(std::signbit(value) ? "-" : "+") +
            (value == 0                 ? "0"
             : std::fabs(value) == 1    ? "1"
             : std::fabs(value) == 0.5f ? "0.5"
                                        : "0.25");
  return text;
}

TEST_P(Zeros, KeepTheSignOfWhatIsRounded) {
  const Tensor x = input();
  EXPECT_EQ(signs(x.trunc()), "-0 -0 +0 +0 -0");
  EXPECT_EQ(signs(x.round()), "-0 -0 +0 +0 -0");
  EXPECT_EQ(signs(x.ceil()), "-0 -0 +0 +1 -0");
  EXPECT_EQ(signs(x.floor()), "-1 -0 +0 +0 -1");
}

TEST_P(Zeros, HaveTheSignOfAProductOrAnOpposite) {
  const Tensor x = input();
  EXPECT_EQ(signs(-x), "+0.5 +0 -0 -0.5 +0.25");
  EXPECT_EQ(signs(x * -1.0), "+0.5 +0 -0 -0.5 +0.25");
  EXPECT_EQ(signs(x * 0.0), "-0 -0 +0 +0 -0");
  EXPECT_EQ(signs(x / INFINITY), "-0 -0 +0 +0 -0");
  EXPECT_EQ(signs(x.abs()), "+0.5 +0 +0 +0.5 +0.25");
  EXPECT_EQ(signs(Tensor::zeros({5}, DType::F32, GetParam()).copysign(x)), "-0 -0 +0 +0 -0");
}

INSTANTIATE_TEST_SUITE_P(Devices, Zeros, testing::ValuesIn(devices_at_hand()),
                         [](const auto& test) { return test_name(test.param); });

}  // namespace
}  // namespace plugrad
