// Trains a small network for twenty steps on every device: its loss equals the CPU's within the
// effect of perturbing the CPU's weights by a few roundings.
#include <gtest/gtest.h>

#include <cmath>

#include "devices/at_hand.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"

using namespace plugrad;

namespace {

constexpr int kSteps = 20, kImages = 16, kSide = 12;

std::vector<float> wave(int64_t count, double step, double scale) {
  std::vector<float> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back(static_cast<float>(scale * std::sin(step * static_cast<double>(i) + 0.3)));
  return out;
}

int64_t elements(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

// Convolution with stride, relu, linear, cross entropy, Adam.
class Network {
 public:
  // Every weight is perturbed by the fraction `disturbance`, with alternating sign.
  Network(const std::string& device, double disturbance) : device_(device) {
    const Shape shapes[] = {{4, 1, 3, 3}, {4}, {100, 10}, {10}};
    for (size_t i = 0; i < std::size(shapes); ++i) {
      auto values = wave(elements(shapes[i]), 0.9 + 0.37 * static_cast<double>(i), 0.25);
      for (size_t j = 0; j < values.size(); ++j)
        values[j] *= static_cast<float>(1 + (j % 2 ? disturbance : -disturbance));
      parameters_.push_back(Tensor::from(values, shapes[i], device).requires_grad_());
    }
  }

  std::vector<double> losses() {
    const Tensor images =
        Tensor::from(wave(kImages * kSide * kSide, 0.11, 1.0), {kImages, 1, kSide, kSide}, device_);
    std::vector<int32_t> names;
    for (int i = 0; i < kImages; ++i) names.push_back(i * 7 % 10);
    const Tensor labels = Tensor::from(names, device_);
    optim::Adam adam(parameters_, {.lr = 0.01});
    std::vector<double> out;
    for (int step = 0; step < kSteps; ++step) {
      adam.zero_grad();
      const Tensor hidden =
          conv2d(images, parameters_[0], parameters_[1], {.stride = 2}).relu().flatten(1);
      Tensor loss = cross_entropy(matmul(hidden, parameters_[2]) + parameters_[3], labels);
      loss.backward();
      adam.step();
      out.push_back(loss.item<double>());
    }
    return out;
  }

 private:
  const std::string device_;
  std::vector<Tensor> parameters_;
};

class Curves : public testing::TestWithParam<std::string> {};

TEST_P(Curves, TwentyStepsAreThoseOfTheCpu) {
  const std::vector<double> wanted = Network("CPU", 0).losses();
  // The error of a sum of n products is about sqrt(n) roundings of 2^-24; the longest sum has 256
  // terms.
  const double rounding = std::ldexp(1.0, -24), disturbance = 16 * rounding;
  const std::vector<double> moved = Network("CPU", disturbance).losses();
  const std::vector<double> got = Network(GetParam(), 0).losses();
  EXPECT_LT(wanted.back(), 0.7 * wanted.front()) << "it learns";
  double sensitivity = 0;
  for (int i = 0; i < kSteps; ++i) {
    const auto at = static_cast<size_t>(i);
    sensitivity = std::max(sensitivity, std::abs(moved[at] - wanted[at]));
    // Each step adds a perturbation.
    const double bound = (i + 1) * (sensitivity + disturbance * std::abs(wanted[at]));
    EXPECT_NEAR(got[at], wanted[at], bound) << "step " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Curves, testing::ValuesIn(devices_at_hand()),
                         [](const auto& tested) { return test_name(tested.param); });

}  // namespace
