// One recording on every device of this machine, and functions on several devices at once.
#include <thread>

#include "devices/at_hand.h"
#include "jit/jit_test.h"

using namespace plugrad;

namespace {

class JitOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(JitOnDevice, AStepWithStateAndRandomNumbers) {
  const std::string device = GetParam();
  const auto run = [&](bool jitted) {
    Tensor::manual_seed(9);
    Tensor w = Tensor::full({4, 4}, 0.5, DType::F32, device).contiguous();
    const auto step = [&](const Tensor& x) {
      const Tensor h = relu(matmul(x, w) + Tensor::rand({2, 4}, DType::F32, device));
      w.assign(w * 0.5 + h.sum(0) * 0.125);
      return std::pair(h.sum(), h.exp().realize().max());
    };
    const auto fast = jit(step);
    std::vector<float> values;
    for (int i = 0; i < 6; ++i) {
      const Tensor x = Tensor::full({2, 4}, 0.25 * i, DType::F32, device).contiguous();
      const auto [sum, most] = jitted ? fast(x) : step(x);
      values.push_back(sum.item<float>());
      values.push_back(most.item<float>());
    }
    for (const float v : floats(w)) values.push_back(v);
    return values;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST_P(JitOnDevice, ResultsStayWhenLaterCallsRun) {
  auto f = jit([](const Tensor& x) { return (x * 2 + 1).exp().log(); });
  std::vector<Tensor> kept;
  for (int i = 0; i < 8; ++i)
    kept.push_back(f(Tensor::full({33}, i, DType::F32, GetParam()).contiguous()));
  for (int i = 0; i < 8; ++i)
    EXPECT_NEAR(floats(kept[static_cast<size_t>(i)])[32], 2 * i + 1, 1e-4);
}

TEST_P(JitOnDevice, ANumberThatIsAssignedLiesWhereTheTensorLay) {
  Tensor w = Tensor::from<float>({1, 2}, GetParam()).realize();
  const Tensor x = Tensor::from<float>({10, 20}, GetParam()).realize();
  auto f = jit([&](const Tensor& a) { return a + w; });
  for (int i = 0; i < 3; ++i) EXPECT_THAT(floats(f(x)), testing::ElementsAre(11, 22));
  const std::string device = w.device();
  w.assign(3);
  EXPECT_EQ(w.device(), device);
  EXPECT_THAT(floats(f(x)), testing::ElementsAre(13, 23));
}

INSTANTIATE_TEST_SUITE_P(All, JitOnDevice, testing::ValuesIn(devices_at_hand()),
                         [](const auto& each) { return test_name(each.param); });

}  // namespace
