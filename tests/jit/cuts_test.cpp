// Functions that read values while they run: jit(f, {.cuts = true}). Results are those of the
// function; what is computed once or in place is counted.
#include <atomic>
#include <cmath>
#include <stdexcept>
#include <thread>

#include "base/settings.h"
#include "jit/jit_test.h"
#include "plugrad/host_view.h"
#include "plugrad/optim.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr JitOptions kCuts{.cuts = true};

Tensor cut_list(const std::vector<float>& values) {
  return Tensor::from(values, {static_cast<int64_t>(values.size())});
}

Tensor cut_weights(const Shape& shape, double by) {
  std::vector<float> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(std::sin(by * static_cast<double>(i)) * 0.3);
  return Tensor::from(values, shape).realize();
}

// Plans and kernels that `work` makes.
uint64_t plans_and_kernels_of(const std::function<void()>& work) {
  engine::Session& session = engine::Session::current();
  const engine::Statistics before = session.statistics();
  work();
  const engine::Statistics after = session.statistics();
  return after.plans_made - before.plans_made + after.kernels_compiled - before.kernels_compiled;
}

// Twice the tensor, in a separate kernel, whose consumers read it in another order.
Tensor stored_twice(const Tensor& w) {
  return (w * 2).contiguous().flip(0);
}

TEST(JitCuts, WithoutTheOptionTheErrorNamesIt) {
  auto f = jit([](const Tensor& x) { return x.sum().item<float>() > 0 ? x : -x; });
  EXPECT_THAT(message_of([&] { f(cut_list({1, 2})); }),
              testing::AllOf(HasSubstr("[read] a value is read inside a jitted function"),
                             HasSubstr("cuts=True"), HasSubstr("{.cuts = true}")));
}

TEST(JitCuts, ALoopRunsAsOftenAsItsCondition) {
  const auto halve = [](const Tensor& x) {
    Tensor loss = x;
    while (loss.item<float>() > 1) loss = loss / 2 + 0.125f;
    return loss;
  };
  auto f = jit(halve, kCuts);
  for (const float value : {3.f, 30.f, 0.5f, 300.f, 7.f})
    EXPECT_EQ(f(cut_list({value})).item<float>(), halve(cut_list({value})).item<float>());
}

TEST(JitCuts, BranchesAndMasksAndLengths) {
  const Tensor w = cut_list({1, 2, 3, 4}).realize();
  const auto pick = [&](const Tensor& x) {
    const Tensor y = stored_twice(w) * x;
    if (y.sum().item<float>() < 0) return -y;
    return y.masked_select(y > 8);
  };
  auto f = jit(pick, kCuts);
  for (const std::vector<float>& x :
       {std::vector<float>{1, 1, 1, 1}, {1, 2, 3, 4}, {-1, 0, 0, 0}, {9, 9, 9, 9}, {0, 0, 0, 0}})
    EXPECT_EQ(floats(f(cut_list(x))), floats(pick(cut_list(x))));
}

TEST(JitCuts, WhatDependsOnCapturedTensorsAloneIsComputedOnce) {
  Tensor w = cut_list({1, 2, 3, 4}).realize();
  auto f = jit(
      [&](const Tensor& x) {
        const Tensor y = (x + stored_twice(w)).realize();
        return y.sum().item<float>() > 0 ? y + stored_twice(w * 3) : y;
      },
      kCuts);
  std::vector<uint64_t> counts;
  for (int call = 0; call < 5; ++call)
    counts.push_back(kernels_of([&] { f(cut_list({1, 1, 1, static_cast<float>(call)})); }));
  EXPECT_EQ(counts[0], counts[2] + 2);
  EXPECT_THAT(counts, testing::Contains(counts[2]).Times(testing::Ge(3)));
  EXPECT_THAT(floats(f(cut_list({0, 0, 0, 0}))), ElementsAre(32, 24, 16, 8));
  w.assign(cut_list({1, 1, 1, 1}));
  EXPECT_THAT(floats(f(cut_list({0, 0, 0, 0}))), ElementsAre(8, 8, 8, 8));
  EXPECT_EQ(kernels_of([&] { f(cut_list({2, 2, 2, 2})); }), counts[2]);
}

TEST(JitCuts, TwoSetsOfWeightsInTurns) {
  const Tensor a = cut_list({1, 2, 3, 4}).realize(), b = cut_list({5, 6, 7, 8}).realize();
  auto f = jit(
      [&](const Tensor& x) {
        const Tensor y = x + stored_twice(a), z = x + stored_twice(b);
        return y.sum().item<float>() + z.sum().item<float>() > 0 ? y + z : y - z;
      },
      kCuts);
  auto g = jit([&](const Tensor& x) { return x.sum().item<float>() > 0 ? x + stored_twice(b) : x; },
               kCuts);
  for (int call = 0; call < 5; ++call) {
    EXPECT_THAT(floats(f(cut_list({1, 1, 1, 1}))), ElementsAre(26, 22, 18, 14));
    EXPECT_THAT(floats(g(cut_list({1, 1, 1, 1}))), ElementsAre(17, 15, 13, 11));
  }
}

TEST(JitCuts, PathsThatWereSeenMakeNothing) {
  const Tensor w = cut_weights({64, 64}, 0.7), v = cut_weights({64, 64}, 0.3);
  auto f = jit(
      [&](const Tensor& x) {
        const Tensor h = x.matmul(w).relu();
        return h.sum().item<float>() > 100 ? h.matmul(v) : h.matmul(v.transpose());
      },
      kCuts);
  const auto input = [](int call) { return cut_weights({32, 64}, 0.1 + 0.01 * call); };
  for (int call = 0; call < 2; ++call) f(input(call)), f(input(call) * 100);
  EXPECT_EQ(plans_and_kernels_of([&] {
              for (int call = 2; call < 6; ++call) f(input(call)), f(input(call) * 100);
            }),
            0U);
  EXPECT_GT(f.recordings(), 0U);
}

// A network of two layers with an optimiser, whose step looks at the loss before it steps.
struct Training {
  std::vector<Tensor> parameters{cut_weights({64, 256}, 0.7), cut_weights({256, 256}, 0.3)};
  optim::Adam optimiser{marked(parameters), {.lr = 1e-2}};
  float most = 0;

  static std::vector<Tensor> marked(std::vector<Tensor>& all) {
    for (Tensor& each : all) each.requires_grad_();
    return all;
  }
  Tensor step(const Tensor& x) {
    optimiser.zero_grad();
    const Tensor loss = x.matmul(parameters[0]).relu().matmul(parameters[1]).square().mean();
    most = std::max(most, loss.item<float>());
    if (most > 1e-12f) loss.backward(), optimiser.step();
    return loss;
  }
};

TEST(JitCuts, AGradientStepWithAReadInBetween) {
  Training plain, cut;
  auto f = jit([&](const Tensor& x) { return cut.step(x); }, kCuts);
  for (int call = 0; call < 6; ++call) {
    const Tensor x = cut_weights({16, 64}, 0.2 + 0.01 * call);
    const auto step = [&] { EXPECT_NEAR(f(x).item<float>(), plain.step(x).item<float>(), 1e-5); };
    if (call < 3)
      step();
    else
      EXPECT_EQ(plans_and_kernels_of(step), 0U);
  }
  EXPECT_EQ(cut.most, plain.most);
  for (size_t i = 0; i < 2; ++i)
    EXPECT_TRUE(cut.parameters[i].allclose(plain.parameters[i], 1e-4, 1e-5));
}

TEST(JitCuts, WithFixedSchedulesBitsAreThoseOfTheFunction) {
  const SettingScope fixed([](Settings& s) { s.deterministic = true; });
  Training plain, cut;
  auto f = jit([&](const Tensor& x) { return cut.step(x); }, kCuts);
  for (int call = 0; call < 5; ++call) {
    const Tensor x = cut_weights({16, 64}, 0.2 + 0.01 * call);
    EXPECT_EQ(floats(f(x)), floats(plain.step(x)));
  }
  for (size_t i = 0; i < 2; ++i) EXPECT_EQ(floats(cut.parameters[i]), floats(plain.parameters[i]));
}

TEST(JitCuts, NewNumbersAndLengthsMakeNothingOnceTheyVary) {
  const Tensor w = cut_weights({48}, 0.7);
  const auto own = [&](const Tensor& x, float k) {
    const Tensor y = x * w * k;
    return y.square().sum().item<float>() > 0 ? y + k : y;
  };
  auto numbers = jit(own, kCuts), lengths = jit(own, kCuts);
  for (int call = 0; call < 8; ++call) {
    const Tensor x = cut_weights({4, 48}, 0.3), longer = cut_weights({3 + call, 48}, 0.4);
    const float k = 0.3f + 0.17f * static_cast<float>(call);
    uint64_t made = 0;
    Tensor y, z;
    made += plans_and_kernels_of([&] { y = numbers(x, k); });
    made += plans_and_kernels_of([&] { z = lengths(longer, 0.3f); });
    if (call >= 4) EXPECT_EQ(made, 0U) << call;
    EXPECT_TRUE(y.allclose(own(x, k), 1e-5, 1e-6));
    EXPECT_TRUE(z.allclose(own(longer, 0.3f), 1e-5, 1e-6));
  }
}

TEST(JitCuts, AReplacedValueGivesItsMemory) {
  constexpr int64_t kSize = 64 << 10;  // elements: small values keep their memory
  Tensor state = Tensor::zeros({kSize}).contiguous().realize();
  auto f = jit(
      [&](const Tensor& x) {
        const float most = x.max().item<float>();
        state.assign(state * 0.5f + (most > 3 ? x : x * 1.5f));
        return x.sum();
      },
      kCuts);
  const auto address = [&] { return host_view(state)->bytes.data(); };
  const auto x = [](int call) { return Tensor::full({kSize}, call).contiguous().realize(); };
  f(x(0)), f(x(1)), f(x(2));
  const auto* const before = address();
  f(x(2));
  EXPECT_EQ(address(), before);
  EXPECT_EQ(state.max().item<float>(), 4.875f);
  const Tensor kept = state * 1;  // computed later, of the value that there is now
  f(x(8));
  EXPECT_NE(address(), before);
  EXPECT_EQ(kept.max().item<float>(), 4.875f);
  EXPECT_EQ(state.max().item<float>(), 10.4375f);
}

TEST(JitCuts, AHeldValueStaysWhatItWas) {
  Tensor state = Tensor::ones({1 << 16}).contiguous().realize();
  std::vector<Tensor> earlier;
  auto f = jit(
      [&](const Tensor& x) {
        earlier.push_back(state + 0);
        state.assign(state + x);
        return state.sum().item<float>() > 0 ? x : -x;
      },
      kCuts);
  for (int call = 0; call < 5; ++call) f(cut_list({1}));
  for (int call = 0; call < 5; ++call)
    EXPECT_EQ(earlier[static_cast<size_t>(call)].max().item<float>(),
              1.f + static_cast<float>(call));
}

TEST(JitCuts, AnExceptionLeavesWhatWasAssigned) {
  Tensor state = cut_list({1}).realize();
  bool fails = false;
  auto f = jit(
      [&](const Tensor& x) {
        state.assign(state + x);
        const float value = state.item<float>();
        state.assign(state * 10);
        if (fails) throw std::runtime_error("between");
        return x * value;
      },
      kCuts);
  for (int call = 0; call < 3; ++call) f(cut_list({1}));
  EXPECT_THAT(floats(state), ElementsAre(2110));
  fails = true;
  EXPECT_THROW(f(cut_list({1})), std::runtime_error);
  EXPECT_THAT(floats(state), ElementsAre(21110));
  fails = false;
  EXPECT_THAT(floats(f(cut_list({1}))), ElementsAre(21111));
}

TEST(JitCuts, InnerJittedFunctionsReplay) {
  int runs = 0;
  auto inner = jit([&](const Tensor& x) { return ++runs, x * x + 1; });
  auto f = jit(
      [&](const Tensor& x) {
        Tensor y = inner(x);
        while (y.item<float>() < 100) y = inner(y);
        return y;
      },
      kCuts);
  for (int call = 0; call < 5; ++call) EXPECT_THAT(floats(f(cut_list({2}))), ElementsAre(677));
  EXPECT_EQ(runs, 2);
}

TEST(JitCuts, InsideARecordingAReadIsAnError) {
  auto inner = jit([](const Tensor& x) { return x.sum().item<float>() > 0 ? x : -x; }, kCuts);
  auto f = jit([&](const Tensor& x) { return inner(x) + 1; });
  EXPECT_THAT(message_of([&] { f(cut_list({1, 2})); }), HasSubstr("cuts=True"));
  EXPECT_THAT(floats(inner(cut_list({-1, -2}))), ElementsAre(1, 2));
}

TEST(JitCuts, ResultsHaveNoTape) {
  const Tensor w = cut_list({1, 2}).requires_grad_();
  auto f = jit([&](const Tensor& x) { return (x * w).sum().item<float>() > 0 ? x * w : x; }, kCuts);
  for (int call = 0; call < 3; ++call)
    EXPECT_THAT(message_of([&] { f(cut_list({1, 1})).sum().backward(); }), HasSubstr("[backward]"));
}

TEST(JitCuts, ThreadsMayCallAtOnce) {
  const Tensor w = cut_weights({32, 32}, 0.7);
  auto f = jit(
      [&](const Tensor& x) {
        const Tensor y = x.matmul(w);
        return y.sum().item<float>() > 0 ? y : -y;
      },
      kCuts);
  const Tensor expected = f(cut_weights({8, 32}, 0.3));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int call = 0; call < 20; ++call)
        wrong += !f(cut_weights({8, 32}, 0.3)).allclose(expected, 1e-4, 1e-5);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(JitCuts, ExplainCountsThem) {
  auto f = jit(
      [](const Tensor& x) {
        Tensor y = x;
        while (y.item<float>() > 1) y = y / 2;
        return y;
      },
      kCuts);
  EXPECT_THAT(f.explain(), HasSubstr("0 calls"));
  f(cut_list({8})), f(cut_list({2}));
  EXPECT_THAT(f.explain(), HasSubstr("2 calls ran the function, in parts between what the host "
                                     "reads: 2 cuts in the last one, 2 to 4 in each"));
}

TEST(JitCuts, WithTheSettingTheFunctionRunsAlone) {
  const SettingScope off([](Settings& s) { s.jit = 0; });
  auto f = jit([](const Tensor& x) { return x.sum().item<float>() > 0 ? x : -x; }, kCuts);
  for (int call = 0; call < 3; ++call)
    EXPECT_THAT(floats(f(cut_list({-1, -2}))), ElementsAre(1, 2));
  EXPECT_EQ(f.recordings(), 0U);
}

}  // namespace
