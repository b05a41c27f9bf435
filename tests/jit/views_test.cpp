// Views in jitted functions: what a function writes to a view shows where it would without jit().
#include <fmt/format.h>

#include <cstdlib>

#include "base/check.h"
#include "base/settings.h"
#include "jit/jit_test.h"
#include "unit/tensor/view_program.h"

namespace plugrad {
namespace {

using testing::ElementsAre;

Tensor counting(int64_t count) {
  return Tensor::arange(count, DType::F32);
}

TEST(JittedViews, OfCapturedTensorsChangeThem) {
  Tensor x = counting(4).realize();
  const Tensor outside = x.slice(0, {1, 3});
  auto step = jit([&](const Tensor& by) {
    Tensor part = x.reshape({2, 2})[1];
    part += by;
    x.flip(0)[0] = 0;
    return part.sum();
  });
  for (float i = 1; i < 6; ++i) {
    const float before = floats(x)[2];
    EXPECT_THAT(floats(step(Tensor::from({1.0f}))), ElementsAre(before + 1));
    EXPECT_THAT(floats(x), ElementsAre(0, 1, before + 1, 0));
    EXPECT_THAT(floats(outside), ElementsAre(1, before + 1));
  }
}

TEST(JittedViews, GivenAsArgumentsChangeTheirBases) {
  auto step = jit([](const Tensor& x) { return Tensor(x).assign(x * 2 + 1).sum(); });
  for (int i = 0; i < 5; ++i) {
    Tensor x = (counting(6) + i).realize();
    Tensor part = x.slice(0, {i, i + 2}), other = x.flip(0);
    EXPECT_THAT(floats(step(part)), ElementsAre(8 * i + 4));
    std::vector<float> expected = {0, 1, 2, 3, 4, 5};
    for (float& e : expected) e += static_cast<float>(i);
    for (int at : {i, i + 1})
      expected[static_cast<size_t>(at)] = 2 * expected[static_cast<size_t>(at)] + 1;
    EXPECT_EQ(floats(x), expected);
    EXPECT_EQ(floats(other), std::vector<float>(expected.rbegin(), expected.rend()));
    part += 1;  // a view still
    EXPECT_EQ(floats(x)[static_cast<size_t>(i)], expected[static_cast<size_t>(i)] + 1);
  }
}

TEST(JittedViews, ResultsAreValues) {
  for (const int with_jit : {0, 1, 2}) {
    const SettingScope scope([&](Settings& s) { s.jit = with_jit; });
    Tensor x = counting(3).realize();
    auto part = jit([](const Tensor& of) { return std::pair(of.slice(0, {0, 2}), of.flip(0)); });
    for (int i = 0; i < 4; ++i) {
      auto [low, turned] = part(x);
      low += 1;
      EXPECT_THAT(floats(turned), ElementsAre(2, 1, 0));
      EXPECT_THAT(floats(x), ElementsAre(0, 1, 2));
    }
  }
}

TEST(JittedViews, TensorsThatShowTheSameElementsAreRefusedIfOneChanges) {
  Tensor x = counting(4).realize();
  auto step = jit([](const Tensor& a, const Tensor& b) { return Tensor(a).assign(a + b).sum(); });
  const std::string refusal =
      "[jit] the function changes a tensor of shape (2) and uses one of shape (2), which may show "
      "some "
      "of the same elements; give it one of both, and take parts inside of the function";
  EXPECT_EQ(message_of([&] { step(x.slice(0, {0, 2}), x.slice(0, {1, 3})); }), refusal);
  EXPECT_THAT(floats(x), ElementsAre(0, 1, 2, 3));
  for (int i = 0; i < 3; ++i) step(x.slice(0, {0, 2}), x.slice(0, {2, 4}));
  EXPECT_THAT(floats(x), ElementsAre(6, 10, 2, 3));
  const Tensor low = x.slice(0, {0, 2}), middle = x.slice(0, {1, 3});
  EXPECT_EQ(message_of([&] { step(low, middle); }), refusal);
  EXPECT_THAT(floats(low), ElementsAre(6, 10));
  EXPECT_THAT(floats(middle), ElementsAre(10, 2));
  EXPECT_THAT(floats(x), ElementsAre(6, 10, 2, 3));
  for (int i = 0; i < 3; ++i) step(x.reshape({2, 2})[0], x.reshape({2, 2})[1]);
  EXPECT_THAT(floats(x), ElementsAre(12, 19, 2, 3));
  auto read = jit([](const Tensor& a, const Tensor& b) { return (a * b).sum(); });
  Tensor y = counting(6).realize();
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_THAT(floats(read(y.slice(0, {i, i + 2}), y.slice(0, {i + 1, i + 3}))),
                ElementsAre(static_cast<float>(i * (i + 1) + (i + 1) * (i + 2))));
  EXPECT_EQ(read.recordings(), 1u);
}

// Without jit what was assigned before the error stays; with it, no view is changed in part.
TEST(JittedViews, OfACallThatFailsAgreeWithTheirBases) {
  Tensor x = counting(4).realize();
  const Tensor part = x.slice(0, {0, 2}), other = x.flip(0);
  Tensor kept;
  auto step = jit([&](const Tensor& fails) {
    Tensor(part).assign(part + 10);
    kept = part.slice(0, {0, 1});
    if (fails.ndim() == 2) fail(ErrorKind::User, "stop");
    return part.sum();
  });
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(message_of([&] { step(Tensor::zeros({1, 1})); }), "stop");
    EXPECT_THAT(floats(part), ElementsAre(0, 1));
    EXPECT_THAT(floats(x), ElementsAre(0, 1, 2, 3));
    EXPECT_THAT(floats(kept), ElementsAre(0));
  }
  kept += 1;
  EXPECT_THAT(floats(x), ElementsAre(1, 1, 2, 3));
  EXPECT_THAT(floats(part), ElementsAre(1, 1));
  EXPECT_THAT(floats(other), ElementsAre(3, 2, 1, 1));
}

TEST(JittedViews, OfLeavesRefuseWritesAsWithoutJit) {
  auto step = jit([](const Tensor& part) { return Tensor(part).assign(part * 2).sum(); });
  for (int i = 0; i < 3; ++i) {
    Tensor plain = counting(3).realize();
    step(plain.slice(0, {0, 2}));
    EXPECT_THAT(floats(plain), ElementsAre(0, 2, 2));
  }
  Tensor leaf = counting(3).realize().requires_grad_();
  EXPECT_THAT(
      message_of([&] { step(leaf.slice(0, {0, 2})); }),
      testing::StartsWith("[assign] a leaf that requires a gradient cannot be changed in part"));
  EXPECT_THAT(floats(leaf), ElementsAre(0, 1, 2));
  for (int i = 0; i < 3; ++i) step(leaf.detach().slice(0, {0, 2}));
  EXPECT_THAT(floats(leaf), ElementsAre(0, 8, 2));
}

TEST(JittedViews, CachesThatWereCutFromOneTensor) {
  Tensor cache = Tensor::zeros({2, 3}).contiguous();
  Tensor keys = cache[0], values = cache[1];
  cache = Tensor();
  auto step = jit([&](const Tensor& x) {
    keys[Slice(0, 1)] = x;
    values += keys;
    return values.sum();
  });
  for (float i = 1; i < 6; ++i) {
    EXPECT_THAT(floats(step(Tensor::from({i}))), ElementsAre(i * (i + 1) / 2));
    EXPECT_THAT(floats(keys), ElementsAre(i, 0, 0));
  }
}

TEST(JittedViews, ToTheSameDeviceIsTheTensorItself) {
  auto step = jit([](const Tensor& x) {
    Tensor same = x.to(x.device()), zeros = Tensor::zeros({2}), also = zeros.to(zeros.device());
    same += 1;
    also += 2;
    return x + zeros;
  });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = Tensor::zeros({2});
    EXPECT_THAT(floats(step(x)), ElementsAre(3, 3));
    EXPECT_THAT(floats(x), ElementsAre(1, 1));
  }
}

TEST(JittedViews, RandomPrograms) {
  using namespace view_program;
  const char* const count = std::getenv("PLUGRAD_TEST_COUNT");
  const char* const seed = std::getenv("PLUGRAD_TEST_SEED");
  const int begin = seed ? std::atoi(seed) : 0, programs = count ? std::atoi(count) : 12;
  for (int i = begin; i < begin + programs && !testing::Test::HasFailure(); ++i) {
    // A captured tensor, an argument, and one that the function makes.
    const std::vector<Shape> shapes = {{3, 2}, {2, 3}, {6}};
    const auto actions = make(
        static_cast<uint32_t>(i), shapes,
        {.actions = static_cast<size_t>(3 + i % 9), .realizes = false, .first_with_gradients = 2});
    SCOPED_TRACE(fmt::format("seed {}:\n{}", i, view_program::to_string(actions)));
    const std::vector<double> start = {1, -1, 1, 0, 2, 1}, numbers = {2.0, -1.0, 3.0};
    Tensor leaf = Tensor::from(numbers).requires_grad_();
    Tensor captured = Tensor::from(start, shapes[0]);
    const Tensor outside = captured.transpose();
    std::vector<bool> is_detached;
    auto step = jit([&](const Tensor& given) {
      leaf.zero_grad();
      std::vector<Tensor> tensors = {captured, given, given.reshape({6}) * 1.0};
      perform(actions, tensors, leaf);
      const Tensor sum = weighted_sum(tensors, is_detached) + leaf.sum() * 0.0;
      sum.backward();
      return sum;
    });
    Places captured_places = Places::of(start, shapes[0]);
    for (int call = 0; call < 4 && !testing::Test::HasFailure(); ++call) {
      Tensor base = Tensor::from(start);
      const Tensor given = call % 2 == 0 ? base.reshape({2, 3}) : base.reshape({3, 2}).transpose();
      Places given_places = Places::of(start, {6});
      given_places =
          call % 2 == 0 ? moved(given_places, {.kind = Move::Kind::Reshape, .shape = {2, 3}})
                        : moved(moved(given_places, {.kind = Move::Kind::Reshape, .shape = {3, 2}}),
                                {.kind = Move::Kind::Permute, .order = {1, 0}});
      std::vector<Places> places = {captured_places, given_places,
                                    Places::of(given_places.values(), {6})};
      perform(actions, places, numbers);
      is_detached = detached(places);
      const Tensor sum = step(given);
      const Element expected = weighted_sum(places);
      EXPECT_EQ(sum.to_vector<double>(), std::vector{expected.value}) << "call " << call;
      EXPECT_EQ(leaf.grad().to_vector<double>(),
                std::vector(expected.slope, expected.slope + kLeaf))
          << "call " << call;
      EXPECT_EQ(captured.to_vector<double>(), places[0].values()) << "call " << call;
      EXPECT_EQ(outside.to_vector<double>(),
                moved(captured_places, {.kind = Move::Kind::Permute, .order = {1, 0}}).values());
      std::vector<double> base_values;
      for (const Element& e : given_places.root->elements) base_values.push_back(e.value);
      EXPECT_EQ(base.to_vector<double>(), base_values) << "call " << call;
      // Small again, so that the numbers stay exact.
      captured.assign(Tensor::from(start, shapes[0]));
      captured_places = Places::of(start, shapes[0]);
    }
  }
}

}  // namespace
}  // namespace plugrad
