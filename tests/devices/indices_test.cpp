// PLUGRAD_CHECK_INDICES: out-of-range indices computed by a device are errors when a dependent
// value is read, on every device of this machine, also in replays.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/settings.h"
#include "devices/at_hand.h"
#include "plugrad/plugrad.h"

using namespace plugrad;

namespace {

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "none";
}

class CheckedIndices : public testing::TestWithParam<std::string> {
 protected:
  Tensor numbers(const std::vector<int32_t>& list) const { return Tensor::from(list, GetParam()); }
  /// The numbers, computed by the device.
  Tensor computed(const std::vector<int32_t>& list) const { return numbers(list) + numbers({0}); }
  Tensor table(int64_t rows, int64_t columns) const {
    return Tensor::arange(rows * columns, DType::F32).reshape({rows, columns}).to(GetParam());
  }

  const SettingScope on{[](Settings& s) { s.check_indices = true; }};
};

TEST_P(CheckedIndices, EveryFunctionNamesWhatLiesOutside) {
  const Tensor x = table(3, 4), bad = computed({0, 2, 3}), row = bad.reshape({1, 3});
  const auto of = [](const std::string& what, const std::string& size) {
    return what + " (element 2) is out of range for size 3: allowed are " + size;
  };
  const std::pair<std::string, std::function<Tensor()>> cases[] = {
      {of("[embedding] index 3", "0 to 2"), [&] { return embedding(x, bad); }},
      {of("[index_select] index 3", "-3 to 2"), [&] { return x.index_select(0, bad); }},
      {of("[gather] index 3", "-3 to 2"), [&] { return x.gather(0, row); }},
      {of("[scatter] index 3", "-3 to 2"), [&] { return x.scatter(0, row, 1.0); }},
      {of("[scatter_reduce] index 3", "-3 to 2"),
       [&] { return x.scatter_reduce(0, row, Tensor(1.0), Combine::Sum); }},
      {of("[index] index 3", "-3 to 2"), [&] { return Tensor(x[bad]); }},
      {of("[one_hot] index 3", "0 to 2"), [&] { return bad.one_hot(3); }},
      {of("[cross_entropy] label 3", "0 to 2"), [&] { return cross_entropy(table(3, 3), bad); }},
      {of("[nll_loss] label 3", "0 to 2"), [&] { return nll_loss(table(3, 3), bad); }},
      {of("[sparse_categorical_crossentropy] label 3", "0 to 2"),
       [&] { return sparse_categorical_crossentropy(table(3, 3), bad); }},
  };
  for (const auto& [message, f] : cases) {
    const Tensor y = f();
    EXPECT_EQ(error_of([&] { y.to_vector<double>(); }), message);
    EXPECT_EQ(error_of([&] { (y + 1).to_vector<double>(); }), message) << "what is computed of it";
  }
  EXPECT_EQ(bad.to_vector<int32_t>(), (std::vector<int32_t>{0, 2, 3})) << "the indices themselves";
}

TEST_P(CheckedIndices, AssignmentIsChecked) {
  Tensor x = table(3, 2) * 1.0;
  x[computed({-4, 1})] = 7.0;
  EXPECT_EQ(error_of([&] { x.to_vector<float>(); }),
            "[index] index -4 (element 0) is out of range for size 3: allowed are -3 to 2");
}

TEST_P(CheckedIndices, ValuesInsideAreWhatTheyAreWithoutIt) {
  const Tensor x = table(3, 2);
  EXPECT_EQ(x.index_select(0, computed({-3, 2})).to_vector<float>(),
            (std::vector<float>{0, 1, 4, 5}));
  EXPECT_EQ(embedding(x, computed({2, 0})).to_vector<float>(), (std::vector<float>{4, 5, 0, 1}));
  const Tensor labels = computed({1, -100});
  CrossEntropyOptions ignoring;
  ignoring.ignore_index = -100;
  EXPECT_EQ(cross_entropy(Tensor::zeros({2, 4}).to(GetParam()), labels, ignoring).item<float>(),
            std::log(4.0f));
  EXPECT_EQ(x.index_select(0, computed({})).shape(), (Shape{0, 2}));
}

TEST_P(CheckedIndices, ManyLongAndFirstOfSeveral) {
  std::vector<int32_t> list(70000, 5);
  list[65537] = 1000000;
  list[65538] = -9;
  const Tensor y = table(6, 1).index_select(0, computed(list));
  EXPECT_EQ(error_of([&] { y.sum().item<float>(); }),
            "[index_select] index 1000000 (element 65537) is out of range for size 6: allowed are "
            "-6 to 5");
}

TEST_P(CheckedIndices, OffTheyReadZero) {
  const SettingScope off([](Settings& s) { s.check_indices = false; });
  EXPECT_EQ(table(2, 1).index_select(0, computed({1, 2})).to_vector<float>(),
            (std::vector<float>{1, 0}));
}

TEST_P(CheckedIndices, ReplaysAreChecked) {
  const Tensor x = table(3, 1);
  auto f = jit([&](const Tensor& i) { return x.index_select(0, i * 2); });
  for (int call = 0; call < 4; ++call)
    EXPECT_EQ(f(numbers({0, 1})).to_vector<float>(), (std::vector<float>{0, 2})) << call;
  EXPECT_EQ(f.recordings(), 1u);
  const Tensor y = f(numbers({1, 2}));
  EXPECT_EQ(error_of([&] { y.to_vector<float>(); }),
            "[index_select] index 4 (element 1) is out of range for size 3: allowed are -3 to 2");
  EXPECT_EQ(f(numbers({1, 1})).to_vector<float>(), (std::vector<float>{2, 2}));
}

TEST_P(CheckedIndices, ReplaysOfDrawsAreChecked) {
  auto f = jit([](const Tensor& weights) { return weights.multinomial(2, true); });
  const auto weights = [&](float w) { return Tensor::from<float>({0, w, 0}, GetParam()); };
  for (int call = 0; call < 3; ++call)
    EXPECT_EQ(f(weights(1)).to_vector<int32_t>(), (std::vector<int32_t>{1, 1})) << call;
  const Tensor none = f(weights(0));
  EXPECT_EQ(error_of([&] { none.to_vector<int32_t>(); }),
            "[multinomial] draw -1 (element 0) is out of range for size 3: allowed are 0 to 2");
}

TEST_P(CheckedIndices, GradientsAndUpdatesDependOnThem) {
  Tensor w = table(3, 2).requires_grad_();
  embedding(w, computed({0, 3})).sum().backward();
  const std::string message =
      "[embedding] index 3 (element 1) is out of range for size 3: allowed are 0 to 2";
  EXPECT_EQ(error_of([&] { w.grad().to_vector<float>(); }), message);
  w.assign(w.detach() - w.grad());
  EXPECT_EQ(error_of([&] { w.to_vector<float>(); }), message);
}

// Without the setting: each call of a jitted function checks the indices known to the host.
class KnownIndices : public CheckedIndices {
 protected:
  const SettingScope off{[](Settings& s) { s.check_indices = false; }};
};

TEST_P(KnownIndices, OfArgumentsAreCheckedInEachCall) {
  const Tensor x = table(3, 1);
  auto f = jit([&](const Tensor& i) { return embedding(x, i.reshape({-1})); });
  const std::string message =
      "[embedding] index 3 (element 1) is out of range for size 3: allowed are 0 to 2";
  EXPECT_EQ(error_of([&] { f(numbers({0, 3})); }), message) << "recorded";
  for (int call = 0; call < 4; ++call)
    EXPECT_EQ(f(numbers({0, 2})).to_vector<float>(), (std::vector<float>{0, 2})) << call;
  EXPECT_EQ(f.recordings(), 1u);
  EXPECT_EQ(error_of([&] { f(numbers({0, 3})); }), message) << "replayed";
  EXPECT_EQ(f(numbers({1, 1})).to_vector<float>(), (std::vector<float>{1, 1}));
}

INSTANTIATE_TEST_SUITE_P(devices, CheckedIndices, testing::ValuesIn(devices_at_hand()),
                         [](const auto& i) { return test_name(i.param); });
INSTANTIATE_TEST_SUITE_P(devices, KnownIndices, testing::ValuesIn(devices_at_hand()),
                         [](const auto& i) { return test_name(i.param); });

}  // namespace
