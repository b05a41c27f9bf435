// Gradients and optimisers in jitted functions give the same numbers as without jit.
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "jit/jit_test.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

struct Net {
  nn::Linear hidden{2, 8}, out{8, 2};
  nn::BatchNorm norm{8};
  PLUGRAD_FIELDS(hidden, out, norm)
  Tensor operator()(const Tensor& x) { return out(norm(relu(hidden(x))).dropout(0.1)); }
};

template <class Optimizer, class Options>
std::vector<float> train(bool jitted, const Options& options) {
  Tensor::manual_seed(3);
  Net net;
  Optimizer opt(nn::parameters(net), options);
  const auto step = [&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  };
  const auto fast = jit(step);
  std::vector<float> losses;
  const auto rate = optim::cosine_rate(0.05, 8);
  for (int i = 0; i < 8; ++i) {
    opt.set_learning_rate(rate(i));
    const Tensor x = Tensor::rand({4, 2}), y = Tensor::from<int>({0, 1, 1, i % 2});
    losses.push_back((jitted ? fast(x, y) : step(x, y)).template item<float>());
  }
  for (const auto& [name, tensor] : nn::state_dict(net))
    for (const float value : floats(tensor)) losses.push_back(value);
  EXPECT_EQ(fast.recordings(), jitted ? 1u : 0u);
  return losses;
}

TEST(JitGradients, TrainingIsBitForBitThatWithoutJit) {
  EXPECT_EQ(train<optim::Adam>(true, optim::AdamOptions{.lr = 0.05}),
            train<optim::Adam>(false, optim::AdamOptions{.lr = 0.05}));
  EXPECT_EQ(train<optim::SGD>(true, optim::SGDOptions{.lr = 0.05, .momentum = 0.9}),
            train<optim::SGD>(false, optim::SGDOptions{.lr = 0.05, .momentum = 0.9}));
}

TEST(JitGradients, GradientsThatNoStepUsedAreKept) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  auto f = jit([&](const Tensor& x) { (w * x).sum().backward(); });
  for (int i = 1; i <= 5; ++i) {
    w.zero_grad();
    f(Tensor::from<float>({static_cast<float>(i), 3}));
    EXPECT_THAT(floats(w.grad()), ElementsAre(i, 3));
  }
}

TEST(JitGradients, GradientsAddUpOverCalls) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  auto f = jit([&](const Tensor& x) { (w * x).sum().backward(); });
  for (int i = 1; i <= 6; ++i) {
    f(Tensor::from<float>({1, 3}));
    EXPECT_THAT(floats(w.grad()), ElementsAre(i, 3 * i));
  }
  w.zero_grad();
  f(Tensor::from<float>({1, 3}));
  EXPECT_THAT(floats(w.grad()), ElementsAre(1, 3));
}

// The gradients after each of 12 calls: `inside` micro-batches in the function, `zero` clears
// before each group of `outside` calls.
std::vector<float> accumulated(bool is_jitted, int inside, int outside, bool clears, bool begins) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  if (begins) (w * 100).sum().backward();
  const auto micro_batches = [&](const Tensor& x) {
    for (int i = 1; i <= inside; ++i) (w * x * i).sum().backward();
  };
  const auto fast = jit(micro_batches);
  std::vector<float> seen;
  for (int call = 0; call < 12; ++call) {
    if (clears && call % outside == 0) w.zero_grad();
    const Tensor x = Tensor::from<float>({static_cast<float>(call + 1), 3});
    if (is_jitted)
      fast(x);
    else
      micro_batches(x);
    for (const float value : floats(w.grad())) seen.push_back(value);
  }
  EXPECT_GE(fast.recordings(), is_jitted ? 1u : 0u);
  return seen;
}

TEST(JitGradients, AddUpOverMicroBatchesInsideAndOutside) {
  for (const int inside : {1, 2, 3, 8})
    for (const int outside : {1, 2, 4})
      for (const bool clears : {false, true})
        for (const bool begins : {false, true})
          EXPECT_EQ(accumulated(true, inside, outside, clears, begins),
                    accumulated(false, inside, outside, clears, begins))
              << inside << " inside, " << outside << " outside, " << clears << begins;
}

TEST(JitGradients, AnOptimiserMayStepAfterSeveralCalls) {
  const auto run = [](bool is_jitted) {
    Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
    optim::SGD opt({w}, {.lr = 0.125, .momentum = 0.5});
    const auto add = [&](const Tensor& x) {
      const Tensor loss = (w * w * x).sum();
      loss.backward();
      return loss;
    };
    const auto fast = jit(add);
    std::vector<float> seen;
    for (int call = 0; call < 16; ++call) {
      const Tensor x = Tensor::from<float>({1, static_cast<float>(call % 3)});
      seen.push_back((is_jitted ? fast(x) : add(x)).item<float>());
      if (call % 4 != 3) continue;
      opt.step();
      opt.zero_grad();
    }
    for (const float value : floats(w)) seen.push_back(value);
    return seen;
  };
  EXPECT_EQ(run(true), run(false));
}

TEST(JitGradients, AreNotRecordedInARecordingWithThem) {
  for (const bool trains_first : {true, false}) {
    Tensor w = Tensor::from<float>({1}).requires_grad_();
    optim::SGD opt({w}, {.lr = 0.5});
    auto f = jit([&](const Tensor& x) {
      const Tensor loss = (w * x).sum();
      if (!is_grad_enabled()) return loss;
      opt.zero_grad();
      loss.backward();
      opt.step();
      return loss;
    });
    const Tensor x = Tensor::from<float>({2});
    int trained = 0;
    const auto call = [&](bool trains) {
      std::optional<NoGradScope> scope;
      if (!trains) scope.emplace();
      for (int i = 0; i < 3; ++i) f(x);
      trained += trains ? 3 : 0;
      EXPECT_EQ(w.item<int>(), 1 - trained) << trains_first;
    };
    for (int i = 0; i < 4; ++i) call(trains_first == (i % 2 == 0));
    EXPECT_EQ(f.recordings(), 2u);
  }
}

TEST(JitGradients, AWriteToPartOfALeafIsRefusedAsWithoutJit) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  auto f = jit([&](const Tensor& x) { w[{Slice(0, 1)}] = x; });
  {
    const NoGradScope scope;
    for (int i = 0; i < 3; ++i) f(Tensor::from<float>({5}));
  }
  EXPECT_THAT(message_of([&] { f(Tensor::from<float>({7})); }),
              HasSubstr("cannot be changed in part"));
  EXPECT_THAT(floats(w), ElementsAre(5, 2));
}

TEST(JitGradients, ATensorIsAssignedALeafWithoutGradients) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_(), b = Tensor::zeros({2});
  auto f = jit([&](const Tensor& x) {
    {
      const NoGradScope scope;
      b.assign(w);
    }
    (b * w * x).sum().backward();
  });
  for (int i = 1; i <= 4; ++i) {
    w.zero_grad();
    f(Tensor::from<float>({1}) * i);
    EXPECT_THAT(floats(w.grad()), ElementsAre(i, 2 * i));
  }
}

TEST(JitGradients, AreClearedWhetherOrNotTheyExistedWhenRecorded) {
  for (const bool exist : {false, true}) {
    Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
    auto f = jit([&](const Tensor& x) {
      w.zero_grad();
      return (w * x).sum();
    });
    const auto call = [&](bool begins) {
      if (begins) {
        (w * 3).sum().backward();
        EXPECT_THAT(floats(w.grad()), ElementsAre(3, 3));
      }
      f(Tensor::from<float>({1}));
      EXPECT_FALSE(w.grad().defined());
    };
    for (int i = 0; i < 3; ++i) call(exist);
    for (int i = 0; i < 6; ++i) call(i % 2 == 0);
    EXPECT_EQ(f.recordings(), 1u);
  }
}

TEST(JitGradients, MayExistInEverySecondCall) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  auto f = jit([&](const Tensor& x) {
    w.zero_grad();
    return (w * x).sum();
  });
  for (int i = 0; i < 8; ++i) {
    if (i % 2 == 0) (w * 3).sum().backward();
    EXPECT_EQ(f(Tensor::from<float>({1})).item<int>(), 3);
    EXPECT_FALSE(w.grad().defined());
  }
  EXPECT_EQ(f.recordings(), 1u);
}

TEST(JitGradients, ATensorGivenAsOneIsGivenInEachCall) {
  Tensor w = Tensor::from<float>({1, 2}).requires_grad_();
  const Tensor given = Tensor::from<float>({3, 4});
  auto f = jit([&](const Tensor& x) {
    w.set_grad(given);
    return x * 2;
  });
  for (int i = 0; i < 6; ++i) {
    if (i > 3) w.zero_grad();
    f(Tensor::from<float>({1}));
    EXPECT_THAT(floats(w.grad()), ElementsAre(3, 4));
  }
}

TEST(JitGradients, GradientsOfArguments) {
  auto f = jit([](Tensor x) {
    x.requires_grad_();
    x.zero_grad();
    (x * x).sum().backward();
    return x.grad();
  });
  for (int i = 1; i <= 4; ++i) {
    Tensor x = Tensor::from<float>({static_cast<float>(i)});
    EXPECT_EQ(f(x).item<int>(), 2 * i);
    EXPECT_EQ(x.grad().item<int>(), 2 * i);
    EXPECT_TRUE(x.requires_grad());
  }
}

TEST(JitGradients, TheFunctionalFormAndItsDerivative) {
  auto f = jit([](const Tensor& x) {
    const Tensor first = gradient((x * x * x).sum(), {x})[0];
    return gradient(first.sum(), {x})[0];
  });
  for (int i = 1; i <= 4; ++i)
    EXPECT_EQ(f(Tensor::from<float>({static_cast<float>(i)})).item<int>(), 6 * i);
}

TEST(JitGradients, ATapeDoesNotCrossTheCall) {
  Tensor w = Tensor::from<float>({2}).requires_grad_();
  auto forward = jit([&](const Tensor& x) { return (w * x).sum(); });
  const Tensor x = Tensor::from<float>({3});
  for (int i = 0; i < 3; ++i) {
    const Tensor loss = forward(x);
    EXPECT_EQ(loss.item<int>(), 6);
    EXPECT_THAT(message_of([&] { loss.backward(); }), HasSubstr("[backward]"));
  }
  auto step = jit([&](const Tensor& h) { (w * h).sum().backward(); });
  EXPECT_THAT(message_of([&] { step(w * x); }), HasSubstr("gradients do not flow out of a jitted"));
  for (int i = 0; i < 3; ++i) {
    w.zero_grad();
    step((w * x).detach());
    EXPECT_EQ(w.grad().item<int>(), 6);
  }
  EXPECT_THAT(message_of([&] { step(w * x); }), HasSubstr("gradients do not flow out of a jitted"));
}

TEST(JitGradients, AnErrorInsideAStepUndoesIt) {
  Tensor w = Tensor::from<float>({2}).requires_grad_();
  optim::SGD opt({w}, {.lr = 1});
  bool fails = false;
  auto step = jit([&](const Tensor& x) {
    opt.zero_grad();
    (w * x).sum().backward();
    if (fails) throw std::runtime_error("mine");
    opt.step();
  });
  const Tensor x = Tensor::from<float>({1});
  step(x);
  fails = true;
  EXPECT_THROW(step(x), std::runtime_error);
  EXPECT_EQ(w.item<int>(), 1);
  fails = false;
  for (int i = 0; i < 4; ++i) step(x);
  EXPECT_EQ(w.item<int>(), -3);
}

TEST(JitGradients, AParameterThatIsFrozenStays) {
  Tensor w = Tensor::from<float>({2}).requires_grad_(),
         v = Tensor::from<float>({2}).requires_grad_();
  auto f = jit([&](const Tensor& x) {
    w.zero_grad();
    v.zero_grad();
    (w * v * x).sum().backward();
    return w.grad();
  });
  const Tensor x = Tensor::from<float>({1});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(f(x).item<int>(), 2);
  v.requires_grad_(false);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(f(x).item<int>(), 2);
    EXPECT_FALSE(v.grad().defined());
  }
}

TEST(JitGradients, ParametersMayAlsoBeArguments) {
  Tensor w = Tensor::from<float>({2}).requires_grad_();
  optim::SGD opt({w}, {.lr = 1});
  auto step = jit([&](const Tensor& p, const Tensor& x) {
    opt.zero_grad();
    (p * x).sum().backward();
    opt.step();
    return p * 1;
  });
  for (int i = 1; i <= 4; ++i) EXPECT_EQ(step(w, Tensor::from<float>({1})).item<int>(), 2 - i);
}

// backward has the session and wants the function, a replay has the function and wants the session:
// neither waits for the other for ever.
TEST(JitGradients, ABackwardFunctionMayCallWhatAnotherThreadReplays) {
  auto twice = jit([](const Tensor& x) { return x * 2; });
  const Tensor x = Tensor::from<float>({3});
  for (int i = 0; i < 3; ++i) twice(x);
  std::atomic<bool> has_session = false;
  const CustomFunction square{
      "square",
      [](FunctionContext&, const std::vector<Tensor>& in) {
        return std::vector<Tensor>{in[0] * in[0]};
      },
      [&](const FunctionContext& context, const std::vector<Tensor>& flowing) {
        has_session = true;  // the other thread enters the function now
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        return std::vector<Tensor>{twice(context.inputs()[0]) * flowing[0]};
      }};
  std::thread other([&] {
    while (!has_session) std::this_thread::yield();
    EXPECT_EQ(twice(x).item<int>(), 6);
  });
  Tensor w = Tensor::from<float>({4}).requires_grad_();
  EXPECT_EQ(gradient(square({w})[0].sum(), {w})[0].item<int>(), 8);
  other.join();
}

}  // namespace
