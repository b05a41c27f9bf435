// PLUGRAD_CHECK_INDICES: out-of-range indices computed by the step of a recorded loop raise an
// error when the loop's result is read.
#include "base/settings.h"
#include "devices/at_hand.h"
#include "scan/unrolled.h"

using namespace plugrad;
using Tensors = std::vector<Tensor>;

namespace {

class CheckedScan : public testing::TestWithParam<std::string> {
 protected:
  Tensor numbers(const std::vector<int32_t>& list) const { return Tensor::from(list, GetParam()); }
  Tensor table() const { return Tensor::from<float>({1, 10, 100}, GetParam()); }
  Tensor number(float value) const { return Tensor::from<float>({value}, GetParam()).reshape({}); }
  /// The sums of two elements of the table in each step, after 0.
  ScanResult sums(const Tensor& places, bool reverse = false) const {
    const Tensor x = table();
    return scan(
        [&](const Tensors& state, const Tensors& in) {
          const Tensor both = stack({in[0] * 1, in[0] + 1});
          const Tensor sum = state[0] + x.index_select(0, both).sum();
          return ScanResult{{sum}, {sum * 2}};
        },
        {number(0)}, {places}, reverse);
  }
  static std::string outside(const std::string& place, int element,
                             const std::string& function = "index_select") {
    return "[" + function + "] index " + place + " (element " + std::to_string(element) +
           ") is out of range for size 3: allowed are -3 to 2";
  }
  static std::string read_error(const Tensor& t) {
    return message_of([&] { t.to_vector<float>(); });
  }

  const SettingScope on{[](Settings& s) { s.check_indices = true; }};
};

TEST_P(CheckedScan, ValuesInsideAreWhatTheyAre) {
  const ScanResult r = sums(numbers({0, 1, -3}));
  EXPECT_EQ(r.state[0].item<float>(), 132);
  EXPECT_EQ(r.outputs[0].to_vector<float>(), (std::vector<float>{22, 242, 264}));
}

// Steps have two indices each: those of step 1 are elements 2 and 3.
TEST_P(CheckedScan, StatesAndOutputsNameTheElementOfAllSteps) {
  for (const bool reverse : {false, true}) {
    const ScanResult r = sums(numbers({0, 2, 7}), reverse);
    EXPECT_EQ(read_error(r.state[0]), outside("3", 3)) << reverse;
    EXPECT_EQ(read_error(r.outputs[0]), outside("3", 3)) << reverse;
    EXPECT_EQ(read_error(r.outputs[0].sum() + 1), outside("3", 3)) << "what is computed of it";
  }
}

TEST_P(CheckedScan, OneStepAndTheFirstElement) {
  EXPECT_EQ(read_error(sums(numbers({-4})).state[0]), outside("-4", 0));
  EXPECT_EQ(sums(numbers({1})).state[0].item<float>(), 110);
}

TEST_P(CheckedScan, TwoRangesInOneStep) {
  const Tensor x = table();
  const auto loop = [&](const std::vector<int32_t>& places) {
    return scan(
               [&](const Tensors& state, const Tensors& in) {
                 const Tensor place = (in[0] * 2).reshape({1});
                 const Tensor next = x.index_select(0, place) + x.gather(0, place - 4);
                 return ScanResult{{state[0] + next.reshape({})}, {}};
               },
               {number(0)}, {numbers(places)})
        .state[0];
  };
  EXPECT_EQ(loop({1, 1}).item<float>(), 2 * (100 + 10));
  EXPECT_EQ(read_error(loop({1, 0})), outside("-4", 1, "gather"));
  EXPECT_EQ(read_error(loop({1, 2})), outside("4", 1));
}

TEST_P(CheckedScan, GradientsAreChecked) {
  const auto slope = [&](const std::vector<int32_t>& places) {
    const Tensor x = table();
    const Tensor start = number(1);
    const ScanResult r = scan(
        [&](const Tensors& state, const Tensors& in) {
          return ScanResult{
              {state[0] * 2 + x.index_select(0, (in[0] + 0 * in[0]).reshape({1})).reshape({})}, {}};
        },
        {start}, {numbers(places)});
    return gradient(r.state[0], {start, x});
  };
  const Tensors good = slope({0, 2, 2});
  EXPECT_EQ(good[0].item<float>(), 8);
  EXPECT_EQ(good[1].to_vector<float>(), (std::vector<float>{4, 0, 3}));
  for (const Tensor& bad : slope({0, 3, 2})) EXPECT_EQ(read_error(bad), outside("3", 1));
}

TEST_P(CheckedScan, ReplaysAreChecked) {
  auto f = jit([&](const Tensor& places) { return sums(places).state[0]; });
  for (int call = 0; call < 4; ++call) EXPECT_EQ(f(numbers({0, 1})).item<float>(), 121) << call;
  EXPECT_EQ(f.recordings(), 1u);
  EXPECT_EQ(read_error(f(numbers({1, 5}))), outside("5", 2));
  EXPECT_EQ(f(numbers({1, 1})).item<float>(), 220);
}

TEST_P(CheckedScan, StepsBehindAVariableLengthAreNotChecked) {
  const Variable length("length", 1, 3);
  const Tensor places = numbers({0, 1, 9});
  EXPECT_EQ(sums(length.limit(places, 0, 2)).state[0].item<float>(), 121);
  EXPECT_EQ(read_error(sums(length.limit(places, 0, 3)).state[0]), outside("9", 4));
}

TEST_P(CheckedScan, ALoopInALoopIsChecked) {
  const auto outer = [&](const std::vector<int32_t>& places) {
    return scan(
               [&](const Tensors& state, const Tensors& in) {
                 return ScanResult{{state[0] + sums(in[0]).state[0]}, {}};
               },
               {number(0)}, {numbers(places).reshape({2, 2})})
        .state[0];
  };
  EXPECT_EQ(outer({0, 1, 1, 0}).item<float>(), 242);
  EXPECT_NE(read_error(outer({0, 1, 1, 6})).find("[index_select] index 6 "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(All, CheckedScan, testing::ValuesIn(devices_at_hand()),
                         [](const auto& each) { return test_name(each.param); });

}  // namespace
