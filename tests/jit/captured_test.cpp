// Captures of a jitted function: tensors that it reads, assigns or releases; random numbers; modes.
#include "base/settings.h"
#include "jit/jit_test.h"
#include "plugrad/nn/training.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(JitCaptured, AssignmentsShowThroughEveryHandle) {
  int runs = 0;
  Tensor total = Tensor::zeros({2});
  const Tensor copy = total;
  auto f = jit([&](const Tensor& x) {
    ++runs;
    total += x;
  });
  for (int i = 1; i <= 5; ++i) {
    const Tensor before = total * 1;
    f(Tensor::from<float>({1, 10}));
    EXPECT_THAT(floats(copy), ElementsAre(i, 10 * i));
    EXPECT_THAT(floats(before), ElementsAre(i - 1, 10 * (i - 1)));
  }
  EXPECT_EQ(runs, 2);
}

TEST(JitCaptured, WhatIsAssignedOutsideIsSeen) {
  Tensor weight = Tensor::from<float>({2, 3});
  auto f = jit([&](const Tensor& x) { return x * weight; });
  const Tensor x = Tensor::from<float>({1, 1});
  for (int i = 0; i < 3; ++i) f(x);
  weight.assign(Tensor::from<float>({5, 6}));
  EXPECT_THAT(floats(f(x)), ElementsAre(5, 6));
  weight.assign(weight.flip(0) + 1);  // lazy
  EXPECT_THAT(floats(f(x)), ElementsAre(7, 6));
  weight.assign(4);
  EXPECT_THAT(floats(f(x)), ElementsAre(4, 4));
}

TEST(JitCaptured, ATensorOfAnotherDtypeIsRecordedAgain) {
  nn::Linear net(3, 2);
  auto f = jit([&](const Tensor& x) { return net(x); });
  const Tensor x = Tensor::from<float>({1, 2, 3}, {1, 3});
  for (int i = 0; i < 3; ++i) f(x);
  nn::to(net, DType::BF16);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(x).dtype(), net(x).dtype());
    EXPECT_EQ(floats(f(x)), floats(net(x)));
  }
}

TEST(JitCaptured, TwoTensorsWithOneValueAreTold) {
  Tensor a = Tensor::from<float>({1}).realize(), b = a.clone();
  auto f = jit([&](const Tensor& x) { return x + a * 10 + b * 100; });
  const Tensor x = Tensor::from<float>({0});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<int>(), 110);
  b.assign(Tensor::from<float>({2}));
  EXPECT_EQ(f(x).item<int>(), 210);
}

TEST(JitCaptured, AnArgumentMayBeWhatIsCapturedToo) {
  const Tensor w = Tensor::from<float>({1, 2}).realize(),
               x = Tensor::from<float>({10, 20}).realize();
  int runs = 0;
  auto f = jit([&](const Tensor& a) {
    ++runs;
    return a + w * 2;
  });
  for (int i = 0; i < 3; ++i) EXPECT_THAT(floats(f(w)), ElementsAre(3, 6));
  for (int i = 0; i < 4; ++i) {  // in turns: each way is recorded by itself
    EXPECT_THAT(floats(f(x)), ElementsAre(12, 24));
    EXPECT_THAT(floats(f(w)), ElementsAre(3, 6));
    EXPECT_THAT(floats(f(Tensor::from<float>({5, 6}))), ElementsAre(7, 10));
  }
  EXPECT_LE(runs, 7);
}

TEST(JitCaptured, AnAssignedTensorMayBecomeAnArgument) {
  const auto results = [](bool is_jitted) {
    Tensor w = Tensor::from<float>({1, 2}).realize();
    const Tensor x = Tensor::from<float>({10, 20}).realize();
    const auto body = [&](const Tensor& a) {
      w.assign(w + 1);
      return a + 0.0;
    };
    const auto f = jit(body);
    std::vector<std::vector<float>> all;
    for (const Tensor* each : {&x, &x, &x, static_cast<const Tensor*>(&w), &x,
                               static_cast<const Tensor*>(&w), static_cast<const Tensor*>(&w)}) {
      all.push_back(floats(is_jitted ? f(*each) : body(*each)));
      all.push_back(floats(w));
    }
    return all;
  };
  EXPECT_EQ(results(true), results(false));
}

TEST(JitCaptured, OnlyTheOptimisersTensorsAreTrainedWhateverIsGiven) {
  const auto train = [](bool is_jitted) {
    Tensor p = Tensor::from<float>({1, 2}).realize().requires_grad_();
    Tensor q = Tensor::from<float>({5, 6}).realize().requires_grad_();
    optim::SGD opt({p}, {.lr = 0.1});
    const auto body = [&](const Tensor& a) {
      opt.zero_grad();
      const Tensor loss = (a * a).sum() + (p * p).sum();
      loss.backward();
      opt.step();
      return loss;
    };
    const auto f = jit(body);
    std::vector<float> all;
    for (const Tensor* a : {&p, &p, &p, &q, &p, &q}) {
      all.push_back((is_jitted ? f(*a) : body(*a)).item<float>());
      for (const Tensor* each : {&p, &q}) all.push_back(floats(*each)[0]);
    }
    return all;
  };
  const std::vector<float> got = train(true);
  EXPECT_THAT(got, testing::Pointwise(testing::FloatNear(1e-4f), train(false)));
  EXPECT_EQ(got.back(), 5);  // q
}

TEST(JitCaptured, TensorsThatAreGivenTwiceAndThenOthersAreStillReplayed) {
  int runs = 0;
  auto f = jit([&](const Tensor& a) {
    ++runs;
    return a * 2;
  });
  for (int i = 1; i <= 6; ++i) {
    const Tensor x = Tensor::from<float>({static_cast<float>(i)}).realize();
    for (int twice = 0; twice < 2; ++twice) EXPECT_THAT(floats(f(x)), ElementsAre(2 * i));
  }
  EXPECT_EQ(runs, 3);
}

TEST(JitCaptured, NumbersAndLazyTensors) {
  Tensor number = 2.0;
  Tensor lazy = Tensor::arange(3) * 2 + 1;
  auto f = jit([&](const Tensor& x) { return x * number + lazy; });
  const Tensor x = Tensor::from<float>({1, 1, 1});
  for (int i = 0; i < 4; ++i) EXPECT_THAT(floats(f(x)), ElementsAre(3, 5, 7));
  number.assign(3);
  for (int i = 0; i < 4; ++i) EXPECT_THAT(floats(f(x)), ElementsAre(4, 6, 8));
}

TEST(JitCaptured, AHandleThatIsReboundIsRecordedAnew) {
  Tensor weight = Tensor::from<float>({2});
  auto f = jit([&](const Tensor& x) { return x * weight; });
  const Tensor x = Tensor::from<float>({1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<int>(), 2);
  weight = Tensor::from<float>({7});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<int>(), 7);
}

TEST(JitCaptured, ATensorKeptOutsideIsAnError) {
  Tensor kept;
  auto f = jit([&](const Tensor& x) {
    kept = x * 2;
    return x + 1;
  });
  const Tensor x = Tensor::from<float>({1, 2, 3});
  f(x);
  EXPECT_THAT(message_of([&] { f(x); }),
              HasSubstr("[jit] the function keeps tensors that it made (of shapes (3))"));
}

TEST(JitCaptured, RandomNumbersGoOnAsWithoutJit) {
  const auto draws = [](auto& f) {
    Tensor::manual_seed(5);
    std::vector<float> all;
    const Tensor x = Tensor::from<float>({1, 2, 3});
    for (int i = 0; i < 5; ++i) {
      for (const float v : floats(f(x))) all.push_back(v);
      all.push_back(Tensor::rand({1}).item<float>());
    }
    return all;
  };
  const auto plain = [](const Tensor& x) {
    return x + Tensor::rand({3}) + Tensor::randn({2, 3}).sum(0);
  };
  const auto jitted = jit(plain);
  EXPECT_EQ(draws(jitted), draws(plain));
  EXPECT_EQ(jitted.recordings(), 1u);
  EXPECT_EQ(draws(jitted), draws(plain));
}

TEST(JitCaptured, SeedingInsideIsRefused) {
  auto f = jit([] {
    Tensor::manual_seed(1);
    return Tensor::rand({2});
  });
  EXPECT_THAT(message_of([&] { f(); }), HasSubstr("[manual_seed] inside a jitted function"));
}

TEST(JitCaptured, TrainingAndEvaluationAreRecordedApart) {
  nn::BatchNorm norm(2);
  auto f = jit([&](const Tensor& x) { return norm(x); });
  const Tensor x = Tensor::from<float>({{1, 10}, {3, 30}});
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(floats(f(x))[0], -1, 1e-3);
    const nn::TrainingScope evaluation(false);
    EXPECT_GT(floats(f(x))[0], -0.9f);
  }
  const double kept = 0.9 * 0.9 * 0.9 * 0.9;
  EXPECT_NEAR(floats(norm.running_mean)[0], 2 * (1 - kept), 1e-5);
}

TEST(JitCaptured, OneRecordingDecodesAtEveryLength) {
  constexpr int64_t kMost = 16, kWidth = 4;
  const Variable length("length", 1, kMost);
  const auto token = [](int64_t n) {
    return (Tensor::arange(kWidth) * 0.1 + 0.3 * static_cast<double>(n)).contiguous();
  };
  Tensor cache = Tensor::zeros({kMost, kWidth});
  auto decode = jit([&](const Tensor& x, const Tensor& n) {
    const Tensor place = Tensor::arange(kMost).reshape({kMost, 1});
    cache.assign(where(place == n - 1, x, cache));
    const Tensor scores = where(place < n, matmul(cache, x.reshape({kWidth, 1})), -1e30);
    return (scores.softmax(0) * cache).sum(0);
  });
  for (int64_t n = 1; n <= kMost; ++n) {
    std::vector<Tensor> rows;
    for (int64_t i = 1; i <= n; ++i) rows.push_back(token(i).reshape({1, kWidth}));
    const Tensor whole = cat(rows, 0);
    const Tensor want = (matmul(whole, token(n).reshape({kWidth, 1})).softmax(0) * whole).sum(0);
    EXPECT_THAT(floats(decode(token(n), length.bind(n))),
                testing::Pointwise(testing::FloatNear(1e-5f), floats(want)));
  }
  EXPECT_EQ(decode.recordings(), 1u);
  EXPECT_THAT(message_of([&] { length.bind(17); }),
              HasSubstr("[Variable] length is 17; it is bound to 1 to 16"));
  EXPECT_THAT(message_of([&] { Variable("n", 3, 2); }), HasSubstr("[Variable] n has the bounds"));
}

TEST(JitCaptured, MemoryDoesNotGrow) {
  Tensor total = Tensor::zeros({1000}).contiguous();
  auto f = jit([&](const Tensor& x) {
    total += x;
    return total * 2;
  });
  const Tensor x = Tensor::ones({1000}).contiguous().realize();
  engine::Session& session = engine::Session::current();
  for (int i = 0; i < 10; ++i) f(x);
  session.collect();
  const auto before = session.statistics();
  for (int i = 0; i < 3000; ++i) f(x);
  session.collect();
  const auto after = session.statistics();
  EXPECT_EQ(after.value_bytes, before.value_bytes);
  EXPECT_EQ(after.graph_nodes, before.graph_nodes);
  EXPECT_EQ(total.to_vector<float>()[0], 3010);
}

// A replay cannot detect host changes; JIT=2 runs the function in each call and compares.
TEST(JitCompared, ANumberOfTheHostThatChangesLater) {
  const SettingScope scope([](Settings& s) { s.jit = 2; });
  float by = 2;
  auto times = jit([&](const Tensor& x) { return x * by; });
  const Tensor x = Tensor::from<float>({3});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(times(x).item<int>(), 6);
  by = 5;
  EXPECT_THAT(message_of([&] { times(x); }), HasSubstr("as a number of the host that changes"));
}

TEST(JitCompared, AHandleThatDenotesAnotherTensorWhileTheFirstLives) {
  const SettingScope scope([](Settings& s) { s.jit = 2; });
  Tensor w = Tensor::from<float>({2}).realize();
  auto times = jit([&](const Tensor& x) { return x * w; });
  const Tensor x = Tensor::from<float>({3});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(times(x).item<int>(), 6);
  const Tensor first = w;
  w = Tensor::from<float>({5}).realize();
  EXPECT_THAT(message_of([&] { times(x); }), HasSubstr("it used other tensors"));
}

TEST(JitCompared, WhatAReplayDoesAsWellIsNoDifference) {
  const SettingScope scope([](Settings& s) { s.jit = 2; });
  Tensor total = Tensor::zeros({1}).contiguous().realize();
  auto add = jit([&](const Tensor& x) {
    total.assign(total + x * Tensor::from<float>({2}));
    return total + Tensor::rand({1});
  });
  for (int i = 1; i <= 6; ++i) {
    add(Tensor::from<float>({1}));
    EXPECT_EQ(total.item<int>(), 2 * i);
  }
}

}  // namespace
