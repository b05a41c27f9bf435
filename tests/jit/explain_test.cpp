// The causes that explain() lists, and functions whose numbers differ in each call.
#include <utility>

#include "base/log.h"
#include "jit/jit_test.h"

using namespace plugrad;
using testing::HasSubstr;
using testing::Not;

namespace {

Tensor ones(int64_t rows, DType dtype = DType::F32) {
  return Tensor::ones({rows, 4}).cast(dtype).contiguous().realize();
}

uint64_t kernels_compiled() {
  return engine::Session::current().statistics().kernels_compiled;
}

float number(int call) {
  return 0.3f + 0.017f * static_cast<float>(call);
}

/// A jitted function of several kinds of arguments, called until it replays.
struct Explained {
  Tensor weight = Tensor::ones({4}).contiguous().realize();
  std::function<Tensor(const Tensor&, double, const std::string&)> own =
      [this](const Tensor& x, double k, const std::string&) { return (x * weight).sum() * k; };
  Jit<std::function<Tensor(const Tensor&, double, const std::string&)>> step = jit(own);

  Explained() {
    for (int call = 0; call < 3; ++call) step(ones(3), 0.5, "mean");
    EXPECT_THAT(step.explain(),
                HasSubstr("3 calls: 1 replayed one of 1 recordings, 2 ran to be recorded"));
  }
};

struct Lines {
  std::string text;
  Lines() {
    set_log_sink([](std::string_view line, void* all) { *static_cast<std::string*>(all) += line; },
                 &text);
  }
  ~Lines() { set_log_sink(nullptr, nullptr); }
};

const std::string kMisses =
    "plugrad: warning: [jit] 4 calls in a row ran the function instead of replaying it. In the "
    "last "
    "one ";
const std::string kLists = ". explain() of the jitted function lists all\n";
const std::string kOfNumbers =
    "each number is recorded: give a tensor, Tensor::full({}, k), or a Variable" + kLists;

// Windows along the axis need exact sizes.
Tensor windows(int64_t length) {
  const Tensor x = Tensor::ones({1, 2, length}).contiguous().realize();
  return conv1d(x, Tensor::ones({3, 2, 3}).contiguous().realize());
}

TEST(CompileWarning, TheEighthRoundThatCompiles) {
  const Lines lines;
  for (int64_t length = 20; length < 27; ++length) windows(length).sum().item<float>();
  EXPECT_EQ(lines.text, "");
  for (int64_t length = 27; length < 30; ++length)
    EXPECT_EQ(windows(length).sum().item<float>(), static_cast<float>(3 * 6 * (length - 2)));
  EXPECT_THAT(lines.text,
              testing::MatchesRegex("plugrad: warning: \\[compile\\] f32 \\(.*\\): 8 times values "
                                    "were computed for which there were no kernels, [0-9]+ kernels "
                                    "in [0-9]+ ms. In the last one the shape of .* is .*, was .*; "
                                    "one set of .* explain\\(\\) lists all\n"));
}

// As the weights of a network.
TEST(CompileWarning, NoneForValuesOfOtherShapesInOneRound) {
  const Lines lines;
  for (int64_t size = 3; size < 20; ++size)
    conv1d(Tensor::ones({1, 2, size + 5}).contiguous().realize(),
           Tensor::ones({size, 2, 3}).contiguous().realize())
        .realize();
  EXPECT_EQ(lines.text, "");
}

TEST(JitWarning, TheFourthCallInARowIsNoReplay) {
  const Lines lines;
  const auto step = jit([](const Tensor& x) { return x.sum(); });
  for (int64_t rows = 2; rows < 5; ++rows) step(ones(rows));
  EXPECT_EQ(lines.text, "");
  for (int64_t rows = 5; rows < 12; ++rows) step(ones(rows));
  EXPECT_EQ(lines.text, kMisses +
                            "the shape of argument 1 is (5, 4), was (4, 4); each shape is "
                            "recorded: where a size changes often, make it a variable one: const "
                            "Variable n(\"n\", 1, most); n.fit(x, axis)" +
                            kLists);
}

TEST(JitWarning, EachFunctionHasItsOwn) {
  const Lines lines;
  for (int function = 0; function < 2; ++function) {
    const auto step = jit([](const Tensor& x, int k) { return x.sum() * k; });
    for (int k = 2; k < 12; ++k) step(ones(2), k);
  }
  EXPECT_EQ(lines.text, (kMisses + "argument 2 is 5, was 4; " + kOfNumbers) +
                            (kMisses + "argument 2 is 5, was 4; " + kOfNumbers));
}

TEST(JitWarning, TheAdviceIsOnWhatExplainsTheOthers) {
  const Lines lines;
  const auto step = jit([](const Tensor& x, int k) { return x.sum() * k; });
  for (int k = 2; k < 6; ++k) step(ones(2, k == 5 ? DType::F64 : DType::F32), k);
  EXPECT_EQ(lines.text, kMisses +
                            "the dtype of argument 1 is f64, was f32; argument 2 is 5, was 4; each "
                            "dtype has kernels of its own: cast to one" +
                            kLists);
}

TEST(JitWarning, ReplaysInBetween) {
  const Lines lines;
  const auto step = jit([](const Tensor& x) { return x.sum(); });
  for (int64_t rows = 2; rows < 12; ++rows)
    for (int call = 0; call < 4; ++call) step(ones(rows));
  EXPECT_EQ(lines.text, "");
}

TEST(JitWarning, TwoShapesInTurns) {
  const Lines lines;
  const auto step = jit([](const Tensor& x) { return x.sum(); });
  for (int call = 0; call < 12; ++call) step(ones(2 + call % 2));
  EXPECT_EQ(lines.text, "");
}

TEST(JitWarning, ACapturedTensorThatIsRenewed) {
  const Lines lines;
  Tensor weight = ones(1);
  const auto step = jit([&](const Tensor& x) { return (x * weight).sum(); });
  for (int call = 0; call < 12; ++call) {
    if (call % 2 == 0) weight = Tensor::full({1, 4}, 0.5 * call).contiguous().realize();
    EXPECT_EQ(step(ones(2)).item<float>(), static_cast<float>(4 * (call - call % 2)));
  }
  EXPECT_EQ(lines.text, kMisses +
                            "a captured tensor of shape (1, 4) is gone; a replay uses the tensors "
                            "that the function captured: assign() to such a tensor, or give it as "
                            "an argument" +
                            kLists);
}

TEST(JitExplain, TheFirstCallIsNew) {
  EXPECT_THAT(Explained().step.explain(), HasSubstr("call 1: the first of its kind"));
}

TEST(JitExplain, ANumber) {
  Explained f;
  f.step(ones(3), 0.75, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: argument 2 is 0.75, was 0.5"));
  EXPECT_THAT(f.step.explain(), HasSubstr("Tensor::full({}, k)"));
}

TEST(JitExplain, AString) {
  Explained f;
  f.step(ones(3), 0.5, "sum");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: argument 3 is sum, was mean"));
}

TEST(JitExplain, AShape) {
  Explained f;
  f.step(ones(5), 0.5, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: the shape of argument 1 is (5, 4), was (3, 4)"));
  EXPECT_THAT(f.step.explain(), HasSubstr("Variable n(\"n\", 1, most)"));
}

TEST(JitExplain, ADTypeAndANumber) {
  Explained f;
  f.step(ones(3, DType::F64), 0.25, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: the dtype of argument 1 is f64, was f32; "
                                          "argument 2 is 0.25, was 0.5"));
}

TEST(JitExplain, TheMostSimilarCallIsCompared) {
  Explained f;
  f.step(ones(5), 0.25, "sum");
  f.step(ones(3), 0.5, "max");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 5: argument 3 is max, was mean\n"));
}

TEST(JitExplain, ADevice) {
  Explained f;
  f.weight = f.weight.to("REFERENCE");
  f.step(ones(3).to("REFERENCE"), 0.5, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("the device of argument 1 is REFERENCE, was CPU"));
}

TEST(JitExplain, RequiresGradAndModes) {
  Explained f;
  f.step(ones(3).requires_grad_(), 0.5, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("requires_grad of argument 1 is true, was false"));
  const NoGradScope none;
  f.step(ones(3), 0.5, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("whether gradients are recorded is false, was true"));
}

TEST(JitExplain, ASetting) {
  Explained f;
  const OptimisationScope schedules("none: ");
  f.step(ones(3), 0.5, "mean");
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: a setting of kernels differs"));
}

TEST(JitExplain, ACapturedTensorIsGone) {
  Explained f;
  f.weight = Tensor::zeros({4}).contiguous().realize();
  EXPECT_EQ(f.step(ones(3), 0.5, "mean").item<float>(), 0.0f);
  EXPECT_THAT(f.step.explain(), HasSubstr("call 4: a captured tensor of shape (4) is gone"));
  EXPECT_THAT(f.step.explain(), HasSubstr("assign()"));
}

TEST(JitExplain, ACapturedTensorHasAnotherDType) {
  nn::Linear layer(4, 2);
  const auto step = jit([&](const Tensor& x) { return layer(x).sum(); });
  for (int call = 0; call < 3; ++call) step(ones(3));
  nn::to(layer, DType::F16);
  step(ones(3));
  EXPECT_THAT(step.explain(), HasSubstr("call 4: the dtype of a captured tensor of shape ("));
  EXPECT_THAT(step.explain(), HasSubstr("is f16, was f32"));
}

TEST(JitExplain, AGradient) {
  Tensor weight = ones(2).requires_grad_();
  const auto step = jit([&](const Tensor& x) { (x * weight).sum().backward(); });
  for (int call = 0; call < 4; ++call) step(ones(2));
  EXPECT_THAT(step.explain(), HasSubstr("which tensors have gradients differs"));
}

TEST(JitExplain, TheFunctionDidSomethingElse) {
  int calls = 0;
  const auto step = jit([&](const Tensor& x) { return x.sum() * ++calls; });
  for (int call = 0; call < 2; ++call) step(ones(2));
  EXPECT_THAT(step.explain(),
              HasSubstr("call 2: the function did something else than in the call before: "));
}

TEST(JitExplain, Containers) {
  const auto step = jit([](const std::vector<Tensor>& all, const std::vector<double>& numbers) {
    return all[0] * numbers[0] + all[1];
  });
  for (int call = 0; call < 3; ++call) step(std::vector{ones(2), ones(1)}, std::vector{1.5});
  step(std::vector{ones(2), ones(2)}, std::vector{1.5});
  EXPECT_THAT(step.explain(),
              HasSubstr("call 4: the shape of tensor 2 of argument 1 is (2, 4), was (1, 4)"));
  step(std::vector{ones(2), ones(1)}, std::vector{2.5});
  EXPECT_THAT(step.explain(), HasSubstr("call 5: argument 2 differs"));
}

TEST(JitManyNumbers, TheFunctionRunsWithoutBeingRecorded) {
  const Lines lines;
  const Tensor x = ones(16);
  int runs = 0;
  const auto step = jit([&](const Tensor& given, float k) {
    ++runs;
    return (given * k).relu().sum();
  });
  for (int call = 0; call < 11; ++call) step(x, number(call)).item<float>();
  const uint64_t before = kernels_compiled();
  for (int call = 11; call < 60; ++call)
    EXPECT_NEAR(step(x, number(call)).item<float>(), 64 * number(call), 1e-4f);
  EXPECT_EQ(kernels_compiled(), before);
  EXPECT_EQ(runs, 60);
  EXPECT_THAT(step.explain(),
              HasSubstr("60 calls: 0 replayed one of 0 recordings, 8 ran to be recorded, "
                        "52 ran without being recorded because argument 2 differed in each"));
  EXPECT_EQ(lines.text, kMisses + "argument 2 is 0.351, was 0.33400002; " + kOfNumbers);
}

TEST(JitManyNumbers, OfWeakTensors) {
  const Tensor x = ones(16);
  int runs = 0;
  const auto step = jit([&](const Tensor& given, const Tensor& k) {
    ++runs;
    return (given * k).relu().sum() + given.sum() * k;
  });
  for (int call = 0; call < 11; ++call) step(x, Tensor(number(call))).item<float>();
  const uint64_t before = kernels_compiled();
  for (int call = 11; call < 60; ++call)
    EXPECT_NEAR(step(x, Tensor(number(call))).item<float>(), 128 * number(call), 1e-4f);
  EXPECT_EQ(kernels_compiled(), before);
  EXPECT_EQ(runs, 60);
  for (int call = 0; call < 3; ++call) step(ones(16), Tensor(number(59)));
  EXPECT_EQ(runs, 62);  // a value that comes back is recorded and replayed
}

TEST(JitManyNumbers, WhatIsRecordedReplaysAndWhatComesBackIsRecorded) {
  const Lines lines;
  const Tensor x = ones(16);
  int runs = 0;
  const auto step = jit([&](const Tensor& given, float k) {
    ++runs;
    return given.sum() * k;
  });
  for (int call = 0; call < 3; ++call) step(x, 7.0f);
  for (int call = 0; call < 20; ++call) step(x, number(call));
  EXPECT_EQ(std::exchange(runs, 0), 22);
  EXPECT_FLOAT_EQ(step(x, 7.0f).item<float>(), 448);
  EXPECT_EQ(runs, 0);
  for (int call = 0; call < 4; ++call)
    EXPECT_FLOAT_EQ(step(x, number(19)).item<float>(), 64 * number(19));
  EXPECT_EQ(runs, 2);
  EXPECT_EQ(step.recordings(), 2u);
  EXPECT_EQ(lines.text, kMisses + "argument 2 is 0.351, was 0.33400002; " + kOfNumbers);
}

TEST(JitManyNumbers, OneThatComesBack) {
  const Lines lines;
  const auto step = jit([](const Tensor& x, int k) { return x.sum() * k; });
  for (int k = 2; k < 10; ++k)
    for (int call = 0; call < 3; ++call) step(ones(2), k);
  for (int call = 0; call < 4; ++call) EXPECT_EQ(step(ones(2), 10).item<float>(), 80);
  EXPECT_THAT(step.explain(), HasSubstr("28 calls: 9 replayed one of 9 recordings, 18 ran to be "
                                        "recorded, 1 ran without being recorded"));
  EXPECT_THAT(step.explain(), HasSubstr("call 25: argument 2 is 10, was 9\n"
                                        "call 26: no recording of such a call is kept\n"));
  EXPECT_EQ(lines.text, "");
}

// As many values as there are recordings: a layer's number, e.g.
TEST(JitManyNumbers, ValuesThatFitAreAllRecorded) {
  const Lines lines;
  const Tensor x = ones(2);
  int runs = 0;
  const auto step = jit([&](const Tensor& given, int layer) {
    ++runs;
    return given + layer;
  });
  const auto call_all = [&] {
    for (int layer = 0; layer < 32; ++layer)
      EXPECT_EQ(floats(step(x, layer))[0], static_cast<float>(1 + layer));
  };
  for (int round = 0; round < 4; ++round) call_all();
  runs = 0;
  call_all();
  EXPECT_EQ(runs, 0);
  EXPECT_EQ(lines.text, kMisses + "argument 2 is 3, was 2; " + kOfNumbers);
}

TEST(JitManyNumbers, TrainingIsRight) {
  const auto train = [](bool is_jitted) {
    Tensor weight = Tensor::full({4}, 0.5).contiguous().realize().requires_grad_();
    optim::SGD opt({weight}, {.lr = 0.1, .momentum = 0.9});
    const auto own = [&](const Tensor& x, float k) {
      opt.zero_grad();
      Tensor loss = ((x * weight).sum() * k - 1).square();
      loss.backward();
      opt.step();
      return loss;
    };
    const auto step = jit(own);
    std::vector<float> losses;
    for (int call = 0; call < 24; ++call) {
      const Tensor loss =
          is_jitted ? step(ones(1), 0.1f * number(call)) : own(ones(1), 0.1f * number(call));
      EXPECT_FALSE(is_jitted && loss.requires_grad());
      losses.push_back(loss.item<float>());
    }
    for (const float w : floats(weight)) losses.push_back(w);
    return losses;
  };
  const std::vector<float> jitted = train(true), plain = train(false);
  for (size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(jitted[i], plain[i], 1e-5f) << i;
  EXPECT_LT(plain[23], plain[0]);
}

TEST(JitManyNumbers, OneThatCallsAnotherAndItself) {
  const Tensor x = ones(2);
  const auto inner = jit([](const Tensor& given, int n) { return given * n; });
  std::function<Tensor(const Tensor&, int)> own;
  const auto outer = jit([&](const Tensor& given, int n) { return own(given, n); });
  own = [&](const Tensor& given, int n) {
    return n == 0 ? inner(given, 3) : outer(given, n - 1) + inner(given, n);
  };
  for (int n = 1; n < 20; ++n)
    EXPECT_EQ(floats(outer(x, n))[0], static_cast<float>(3 + n * (n + 1) / 2)) << n;
}

// Compiles what `work` does, and returns what explain() adds.
std::string explained(const std::function<void()>& work) {
  const std::string before = explain();
  const std::string lines = before.substr(0, before.find("- "));
  work();
  std::string now = explain();
  now.erase(0, std::min(lines.size(), now.size()));
  return now;
}

TEST(Explain, ANewComputation) {
  EXPECT_THAT(explained([] { (ones(3).sin().exp() - 0.5).realize(); }),
              HasSubstr("f32 (3, 4), 1 kernel in "));
}

TEST(Explain, ANumberAShapeADTypeASlice) {
  const auto work = [](const Tensor& x, double k, int64_t first, int64_t length) {
    ((x * k).cos().slice(0, {first, first + length}) + 0.125).realize();
  };
  work(ones(7), 0.5, 1, 2);
  EXPECT_THAT(explained([&] { work(ones(7), 0.75, 1, 2); }),
              HasSubstr("a number is 0.75, was 0.5"));
  EXPECT_THAT(explained([&] { work(ones(7), 0.875, 1, 2); }),
              Not(HasSubstr(": a number is 0.875")));
  EXPECT_THAT(explained([&] { work(ones(7), 0.875, 2, 2); }),
              HasSubstr("a slice is [2:4, 0:4], was [1:3, 0:4]; a number is 0.875, was 0.75"));
  EXPECT_THAT(explained([&] { work(ones(7), 0.875, 2, 3); }),
              HasSubstr("a slice is [2:5, 0:4], was [2:4, 0:4]"));
  EXPECT_THAT(explained([&] { work(ones(9), 0.875, 2, 3); }),
              HasSubstr("the shape of an operand is (9, 4), was (7, 4)"));
  EXPECT_THAT(explained([&] { work(ones(9, DType::F64), 0.875, 2, 3); }),
              HasSubstr("the dtype of an operand is f64, was f32"));
}

TEST(Explain, ADeviceAndASetting) {
  const auto work = [](const Tensor& x) { (x.sin() * x).sum(1).realize(); };
  const Tensor x = ones(6);
  work(x);
  {
    const OptimisationScope schedules("none: ");
    EXPECT_THAT(explained([&] { work(ones(6)); }), HasSubstr("a setting of kernels differs"));
  }
  const Tensor there = x.to("REFERENCE").realize();
  EXPECT_THAT(explained([&] { work(there); }),
              HasSubstr("the device of an operand is REFERENCE, was CPU"));
}

}  // namespace
