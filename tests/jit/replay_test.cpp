// Replays: when they happen, their arguments and results, and when a recording is renewed.
#include <cmath>
#include <thread>

#include "base/settings.h"
#include "engine/session_state.h"
#include "jit/jit_test.h"
#include "tensor/handles.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(Jit, RunsTwiceAndReplaysFromThen) {
  int runs = 0;
  auto f = jit([&](const Tensor& x) {
    ++runs;
    return (x * 2 + 1).sum();
  });
  for (int i = 0; i < 6; ++i)
    EXPECT_EQ(f(Tensor::from<float>({1.0f * static_cast<float>(i), 2, 3})).item<float>(),
              static_cast<float>(2 * i + 13));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(f.recordings(), 1u);
}

// Constant expressions are shared nodes: from the second call on, this node is older than the
// call's other result.
TEST(Jit, ResultsAreInOneOrderWhoeverMadeTheirNodesBefore) {
  int runs = 0;
  const auto table = [] { return Tensor::arange(300, DType::F32).sin(); };
  auto f = jit([&](const Tensor& x) {
    ++runs;
    const Tensor power = x.exp();
    return std::pair(power, table());
  });
  Tensor held;
  for (int i = 0; i < 4; ++i) {
    const auto [power, sines] = f(Tensor::from<float>({0, static_cast<float>(i)}));
    EXPECT_FLOAT_EQ(floats(power)[1], std::exp(static_cast<float>(i)));
    EXPECT_FLOAT_EQ(floats(sines)[2], std::sin(2.0f));
    if (i != 0) continue;
    engine::Session::current().collect();
    held = table();
  }
  EXPECT_EQ(runs, 2);
}

// Its value is there in the second call, and was not in the first.
TEST(Jit, AResultOfConstantsMayBeTheNextArgument) {
  int runs = 0;
  auto step = jit([&](const Tensor& x) {
    ++runs;
    return std::pair(x + 1, (Tensor::arange(3) * 3 + 2).flip(0));
  });
  Tensor given = Tensor::from<int>({8, 5, 2}).realize();
  for (int call = 0; call < 4; ++call) {
    const auto [sum, table] = step(given);
    EXPECT_EQ(sum.to_vector<int>(), (std::vector<int>{9, 6, 3}));
    given = table;
  }
  EXPECT_EQ(given.to_vector<int>(), (std::vector<int>{8, 5, 2}));
  EXPECT_EQ(runs, 2);
}

TEST(Jit, WhatWasMovedFromCanStillBeCalled) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  const Tensor x = Tensor::from<float>({1, 2});
  const auto g = std::move(f);
  EXPECT_THAT(floats(g(x)), ElementsAre(2, 3));
  EXPECT_THAT(floats(f(x)), ElementsAre(2, 3));
}

TEST(Jit, TakesElementsAndSlicesAsTensors) {
  auto f = jit([](const Tensor& row, const Tensor& factor) { return row * factor; });
  const Tensor rows = Tensor::from<float>({{1, 2}, {3, 4}, {5, 6}, {7, 8}}),
               factor = Tensor::from<float>({2, 3});
  for (int64_t i = 0; i < 4; ++i)
    EXPECT_THAT(floats(f(rows[i], factor[i % 2])),
                ElementsAre(static_cast<float>((2 * i + 1) * (2 + i % 2)),
                            static_cast<float>((2 * i + 2) * (2 + i % 2))));
  EXPECT_EQ(f.recordings(), 1u);
}

TEST(Jit, AReplayPlansNothingAndLaunchesTheSameKernels) {
  auto f = jit([](const Tensor& x) { return relu(x).sum(); });
  const Tensor x = Tensor::from<float>({-1, 2}).realize();
  const uint64_t usual = kernels_of([&] { f(x); });
  f(x);
  const auto before = engine::Session::current().statistics();
  EXPECT_EQ(kernels_of([&] { f(x); }), usual);
  const auto after = engine::Session::current().statistics();
  EXPECT_EQ(after.plans_made + after.plan_cache_hits, before.plans_made + before.plan_cache_hits);
}

TEST(Jit, ResultsOfTwoCallsLiveSideBySide) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  std::vector<Tensor> results;
  for (int i = 0; i < 6; ++i) results.push_back(f(Tensor::from<float>({static_cast<float>(i)})));
  for (int i = 0; i < 6; ++i) EXPECT_EQ(results[static_cast<size_t>(i)].item<int>(), i + 1);
}

TEST(Jit, AnArgumentMayBeTheResult) {
  auto f =
      jit([](const Tensor& x, const Tensor& y) { return std::pair(x, x.reshape({2, 1}) + y); });
  for (int i = 0; i < 4; ++i) {
    const Tensor x = Tensor::from<float>({1.0f * static_cast<float>(i), 5});
    const auto [same, sum] = f(x, Tensor::from<float>({1, 2}));
    EXPECT_EQ(tensor::state_of(same), tensor::state_of(x));
    EXPECT_THAT(floats(sum), ElementsAre(i + 1, i + 2, 6, 7));
  }
}

TEST(Jit, AViewOfAnArgumentMayBeTheResult) {
  auto f = jit([](const Tensor& x) { return x.transpose(); });
  for (int i = 0; i < 4; ++i) {
    const float v = static_cast<float>(i);
    EXPECT_THAT(floats(f(Tensor::from<float>({{v, 2}, {3, 4}}))), ElementsAre(v, 3, 2, 4));
  }
}

TEST(Jit, AnArgumentMayBeAssigned) {
  auto f = jit([](Tensor x) { x += 1; });
  Tensor x = Tensor::from<float>({1, 2});
  const Tensor copy = x;
  for (int i = 1; i <= 5; ++i) {
    const Tensor before = x + 0.5;
    f(x);
    EXPECT_THAT(floats(copy), ElementsAre(1 + i, 2 + i));
    const float v = static_cast<float>(i);
    EXPECT_THAT(floats(before), ElementsAre(v + 0.5f, v + 1.5f));
  }
}

TEST(Jit, OneTensorMayBeTwoArguments) {
  auto f = jit([](Tensor x, const Tensor& y) {
    x += y;
    return x * y;
  });
  for (int i = 1; i <= 4; ++i) {
    Tensor x = Tensor::from<float>({static_cast<float>(i)});
    EXPECT_EQ(f(x, x).item<int>(), 4 * i * i);  // y is x, and sees the assignment
    Tensor a = Tensor::from<float>({2}), b = Tensor::from<float>({3});
    EXPECT_EQ(f(a, b).item<int>(), 15);
    const Tensor value = Tensor::from<float>({7}).realize();
    Tensor one = value.clone(), two = value.clone();  // one value, two tensors
    EXPECT_EQ(f(one, two).item<int>(), 98);
    EXPECT_EQ(two.item<int>(), 7);
  }
}

TEST(Jit, LazyArgumentsAndViewsAreComputedFirst) {
  auto f = jit([](const Tensor& x) { return x.sum(0); });
  const Tensor table = Tensor::arange(12, DType::F32).reshape({4, 3});
  for (int i = 0; i < 4; ++i)
    EXPECT_THAT(floats(f((table * i).slice(0, Slice(1, 3)))), ElementsAre(9 * i, 11 * i, 13 * i));
  for (int i = 0; i < 4; ++i) {
    const Tensor view = (table + i).realize().transpose().slice(0, Slice(0, 2));
    EXPECT_THAT(floats(f(view)), ElementsAre(2 * i + 1, 2 * i + 7, 2 * i + 13, 2 * i + 19));
  }
}

TEST(Jit, OtherShapesDtypesAndNumbersAreRecordedApart) {
  int runs = 0;
  auto f = jit([&](const Tensor& x, double factor) {
    ++runs;
    return (x * factor).sum();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(Tensor::from<float>({1, 2}), 2).item<float>(), 6);
    EXPECT_EQ(f(Tensor::from<float>({1, 2, 3}), 2).item<float>(), 12);
    EXPECT_EQ(f(Tensor::from<int>({1, 2}), 2).item<float>(), 6);
    EXPECT_EQ(f(Tensor::from<float>({1, 2}), 0.5).item<float>(), 1.5);
    EXPECT_EQ(f(Tensor::from<float>({1, 2}, "REFERENCE"), 2).item<float>(), 6);
  }
  EXPECT_EQ(runs, 10);
  EXPECT_EQ(f.recordings(), 5u);
}

// A tensor that is the same number everywhere is data, whether it is computed yet or not. Beside a second
// device it is a number, which may be used on either.
TEST(Jit, TensorsOfOneNumberAreReplayed) {
  const bool is_data = engine::Session::current().state().devices.opened().size() <= 1;
  using Make = Tensor (*)(float);
  const Make makes[] = {
      [](float v) { return Tensor::full({}, v); },
      [](float v) { return Tensor::full({3}, v).realize(); },
      [](float v) { return Tensor::full({3}, v).contiguous(); },
      [](float v) { return Tensor::ones({3}) * v; },
      [](float v) { return Tensor::full({}, v).cast(DType::F64).cast(DType::F32); },
      [](float v) { return Tensor::arange(3, DType::F32) * 0 + v; },
  };
  const Tensor x = Tensor::from<float>({1, -0.5f, 0}).realize();
  for (const Make make : makes) {
    int runs = 0;
    auto f = jit([&](const Tensor& k) {
      ++runs;
      return x * k;
    });
    for (const float v : {2.0f, 3.0f, 0.0f, -1.0f, 0.1f, 1e30f})
      EXPECT_EQ(floats(f(make(v))), (std::vector<float>{v, -0.5f * v, 0 * v}));
    if (is_data) {
      EXPECT_EQ(runs, 2);
      EXPECT_EQ(f.recordings(), 1u);
    }
  }
}

TEST(Jit, KeepsABoundedNumberOfRecordings) {
  auto f = jit([](const Tensor& x) { return x + 1; });
  constexpr int kCalls = 3;  // a shape behind the first ones is recorded when it comes back
  for (int n = 1; n <= 50; ++n)
    for (int i = 0; i < kCalls; ++i) f(Tensor::zeros({n}).contiguous());
  EXPECT_EQ(f.recordings(), 32u);
  EXPECT_THAT(floats(f(Tensor::from<float>({3}))), ElementsAre(4));
}

struct Batch {
  Tensor x, y;
  PLUGRAD_FIELDS(x, y)
};

TEST(Jit, TakesAndGivesStructsVectorsAndTuples) {
  auto f = jit([](const Batch& b, const std::vector<Tensor>& list, std::string_view mode) {
    Tensor sum = b.x + b.y;
    for (const Tensor& t : list) sum = mode == "add" ? sum + t : sum * t;
    return std::tuple(sum, std::vector<Tensor>{b.x, sum * 2});
  });
  for (int i = 1; i <= 3; ++i) {
    const Tensor one = Tensor::from<float>({static_cast<float>(i)}),
                 three = Tensor::from<float>({3});
    const auto [sum, list] = f(Batch{one, three}, std::vector{three, three}, "add");
    EXPECT_EQ(sum.item<int>(), i + 9);
    ASSERT_EQ(list.size(), 2u);
    EXPECT_EQ(list[1].item<int>(), 2 * (i + 9));
    const auto [product, rest] = f(Batch{one, three}, std::vector{three}, "multiply");
    EXPECT_EQ(product.item<int>(), 3 * (i + 3));
  }
}

TEST(Jit, AReadInsideIsRefused) {
  auto f = jit([](const Tensor& x) { return x * x.sum().item<float>(); });
  EXPECT_THAT(message_of([&] { f(Tensor::from<float>({1, 2})); }),
              HasSubstr("[read] a value is read inside a jitted function"));
}

TEST(Jit, SeveralPlansInOneCallAreReplayedInOrder) {
  auto f = jit([](const Tensor& x) {
    const Tensor half = (x * 0.5).realize();
    const Tensor there = (half + 1).to("REFERENCE");
    return (there * 2).to("CPU") + half;
  });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(f(Tensor::from<float>({static_cast<float>(2 * i)})).item<int>(), 3 * i + 2);
}

TEST(Jit, AnErrorInsideLeavesTensorsAsTheyWere) {
  bool fails = true;
  Tensor state = Tensor::from<float>({1, 2});
  auto f = jit([&](const Tensor& x) {
    const Tensor sum = state + x;
    if (fails) throw std::runtime_error("mine");
    return sum;
  });
  const Tensor x = Tensor::from<float>({1, 1});
  EXPECT_THROW(f(x), std::runtime_error);
  EXPECT_THAT(floats(state), ElementsAre(1, 2));
  fails = false;
  for (int i = 0; i < 3; ++i) EXPECT_THAT(floats(f(x)), ElementsAre(2, 3));
  EXPECT_THAT(message_of([&] { f(Tensor::from<float>({1, 1, 1})); }), HasSubstr("[add]"));
  EXPECT_THAT(floats(f(x)), ElementsAre(2, 3));
}

TEST(Jit, OneInsideAnotherIsPartOfIt) {
  int runs = 0;
  auto inner = jit([&](const Tensor& x) {
    ++runs;
    return x * 2;
  });
  auto outer = jit([&](const Tensor& x) { return inner(x) + inner(x + 1); });
  for (int i = 0; i < 5; ++i)
    EXPECT_EQ(outer(Tensor::from<float>({static_cast<float>(i)})).item<int>(), 4 * i + 2);
  EXPECT_EQ(runs, 4);
  EXPECT_EQ(inner.recordings(), 0u);
}

TEST(Jit, JitZeroRunsTheFunctionEachTime) {
  const SettingScope scope([](Settings& s) { s.jit = 0; });
  int runs = 0;
  auto f = jit([&](const Tensor& x) { return x + ++runs; });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(f(Tensor::from<float>({0})).item<int>(), i);
  EXPECT_EQ(f.recordings(), 0u);
}

TEST(Jit, ANumberOfTheHostThatChangesIsAnError) {
  int step = 0;
  auto f = jit([&](const Tensor& x) { return x + ++step; });
  const Tensor x = Tensor::from<float>({0});
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(f(x).item<int>(), i);
  EXPECT_THAT(message_of([&] { f(x); }),
              HasSubstr("[jit] the function did something else in each of its 4 calls"));
}

TEST(Jit, ValuesFromTheHostThatChangeAreAnError) {
  float value = 0;
  auto f = jit([&](const Tensor& x) { return x + Tensor::from<float>({++value}); });
  const Tensor x = Tensor::from<float>({0});
  for (int i = 1; i <= 3; ++i) EXPECT_EQ(f(x).item<int>(), i);
  EXPECT_THAT(message_of([&] { f(x); }), HasSubstr("it brought other values from the host"));
}

TEST(Jit, ConstantValuesFromTheHostAreKept) {
  auto f = jit([&](const Tensor& x) { return x * Tensor::from<float>({2, 3}); });
  for (int i = 1; i <= 4; ++i) {
    EXPECT_THAT(floats(f(Tensor::from<float>({static_cast<float>(i), 1}))), ElementsAre(2 * i, 3));
    engine::Session::current().collect();
  }
}

TEST(Jit, ThreadsWithFunctionsOfTheirOwnAndOneForAll) {
  auto shared = jit([](const Tensor& x) { return (x * 3).sum(); });
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor total = Tensor::from<float>({0});
      auto own = jit([&](const Tensor& x) {
        total += x;
        return x + static_cast<double>(t);
      });
      for (int i = 0; i < 20; ++i) {
        const Tensor x = Tensor::from<float>({static_cast<float>(i)});
        wrong[static_cast<size_t>(t)] += own(x).item<int>() != i + t;
        wrong[static_cast<size_t>(t)] += shared(x).item<int>() != 3 * i;
      }
      wrong[static_cast<size_t>(t)] += total.item<int>() != 190;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(wrong, testing::Each(0));
}

}  // namespace
