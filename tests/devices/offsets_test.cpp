// Steps over slices of one tensor share one program, which receives the offsets: on every device,
// launched and replayed.
#include <gtest/gtest.h>

#include <algorithm>

#include "devices/at_hand.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/jit.h"
#include "plugrad/tensor.h"

using namespace plugrad;

namespace {

constexpr int64_t kRows = 3, kOffsetSteps = 9, kWidth = 5;

class Offsets : public testing::TestWithParam<std::string> {};

/// h = relu(reversed h * 2 + x[:, t]), stored at each step: no step fuses with the previous one.
Tensor states(const Tensor& x) {
  Tensor h = Tensor::zeros({kRows, kWidth}).to(x.device());
  for (int64_t t = 0; t < kOffsetSteps; ++t)
    h = (h.flip({1}) * 2 + x[{Slice(), t}]).relu().contiguous();
  return h;
}

std::vector<float> numbers(int salt) {
  std::vector<float> out;
  for (int64_t i = 0; i < kRows * kOffsetSteps * kWidth; ++i)
    out.push_back(static_cast<float>((i * 7 + salt) % 11 - 4));
  return out;
}

std::vector<float> expected(const std::vector<float>& x) {
  std::vector<float> h(static_cast<size_t>(kRows * kWidth));
  for (int64_t t = 0; t < kOffsetSteps; ++t)
    for (int64_t row = 0; row < kRows; ++row) {
      std::reverse(h.begin() + row * kWidth, h.begin() + (row + 1) * kWidth);
      for (int64_t i = 0; i < kWidth; ++i) {
        float& at = h[static_cast<size_t>(row * kWidth + i)];
        at = std::max(0.0f, at * 2 + x[static_cast<size_t>((row * kOffsetSteps + t) * kWidth + i)]);
      }
    }
  return h;
}

TEST_P(Offsets, StepsOverSlices) {
  engine::Session& session = engine::Session::current();
  auto replayed = jit([](const Tensor& x) { return states(x); });
  for (int call = 0; call < 5; ++call) {
    const std::vector<float> x = numbers(call);
    const Tensor there = Tensor::from(x, {kRows, kOffsetSteps, kWidth}, GetParam());
    const auto before = session.statistics();
    EXPECT_EQ(states(there).to_vector<float>(), expected(x));
    const auto now = session.statistics();
    EXPECT_GE(now.kernels_launched - before.kernels_launched, static_cast<uint64_t>(kOffsetSteps));
    EXPECT_LE(now.kernels_compiled - before.kernels_compiled, 2u);
    EXPECT_EQ(replayed(there).to_vector<float>(), expected(x));
  }
}

INSTANTIATE_TEST_SUITE_P(AtHand, Offsets, testing::ValuesIn(devices_at_hand()),
                         [](const auto& device) { return test_name(device.param); });

}  // namespace
