// Results of a recorded loop against a host loop over the same step.
#include "devices/at_hand.h"
#include "scan/unrolled.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

using Tensors = std::vector<Tensor>;

/// A plain recurrent network of one layer.
struct Plain {
  Tensor w, u;
  explicit Plain(DType dtype = DType::F32, std::string_view device = {})
      : w(wave({3, 5}, 0.1, dtype, device)), u(wave({5, 5}, 0.2, dtype, device)) {}
  ScanResult operator()(const std::vector<Tensor>& state, const std::vector<Tensor>& x) const {
    const Tensor h = (matmul(x[0], w) + matmul(state[0], u)).tanh();
    return {{h}, {h, h.sum(-1)}};
  }
};

void expect_same(const ScanResult& a, const ScanResult& b, double tolerance) {
  ASSERT_EQ(a.state.size(), b.state.size());
  ASSERT_EQ(a.outputs.size(), b.outputs.size());
  for (size_t i = 0; i < a.state.size(); ++i) expect_near(a.state[i], b.state[i], tolerance);
  for (size_t i = 0; i < a.outputs.size(); ++i) expect_near(a.outputs[i], b.outputs[i], tolerance);
}

class ScanOnDevice : public testing::TestWithParam<std::string> {};

TEST_P(ScanOnDevice, StepsAsTheHostDoes) {
  const Plain step(DType::F32, GetParam());
  for (const int64_t length : {1, 2, 7})
    for (const bool reverse : {false, true}) {
      const Tensor x = wave({length, 2, 3}, 0.3, DType::F32, GetParam());
      const Tensor h = wave({2, 5}, 0.4, DType::F32, GetParam());
      expect_same(scan(step, {h}, {x}, reverse), unrolled(step, {h}, {x}, reverse), 1e-5);
    }
}

TEST_P(ScanOnDevice, AGradientFlowsToStateInputsAndCapturedTensors) {
  const Plain step(DType::F32, GetParam());
  const Tensor x = wave({6, 2, 3}, 0.3, DType::F32, GetParam());
  const Tensor h = wave({2, 5}, 0.4, DType::F32, GetParam());
  const auto gradients = [&](auto&& loop) {
    const ScanResult r = loop(step, std::vector{h}, std::vector{x}, false);
    const Tensor loss =
        (r.state[0] * 3).sum() + (r.outputs[0] * r.outputs[0]).sum() + r.outputs[1].exp().sum();
    return gradient(loss, {h, x, step.w, step.u});
  };
  const auto one = gradients(scan), other = gradients(unrolled);
  for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], other[i], 1e-4);
}

INSTANTIATE_TEST_SUITE_P(All, ScanOnDevice, testing::ValuesIn(devices_at_hand()),
                         [](const auto& each) { return test_name(each.param); });

TEST(Scan, ATotalOfIntegers) {
  const ScanResult r = scan(
      [](const std::vector<Tensor>& state, const std::vector<Tensor>& x) {
        const Tensor total = state[0] + x[0];
        return ScanResult{{total}, {total}};
      },
      {Tensor::from<int32_t>({100}, Shape{})}, {Tensor::arange(5)});
  EXPECT_EQ(r.state[0].item<int>(), 110);
  EXPECT_EQ(r.outputs[0].to_vector<int>(), (std::vector{100, 101, 103, 106, 110}));
}

TEST(Scan, NoStepLeavesTheStateAndEmptyOutputs) {
  const Tensor h = wave({2, 5}, 0.4);
  const ScanResult r = scan(Plain(), {h}, {Tensor::zeros({0, 2, 3})});
  expect_near(r.state[0], h, 0);
  EXPECT_EQ(r.outputs[0].shape(), (Shape{0, 2, 5}));
  EXPECT_EQ(r.outputs[1].shape(), (Shape{0, 2}));
}

TEST(Scan, NothingRunsUntilItIsAskedFor) {
  const auto before = engine::Session::current().statistics();
  const ScanResult r = scan(Plain(), {wave({2, 5}, 0.4)}, {wave({4, 2, 3}, 0.3)});
  EXPECT_EQ(engine::Session::current().statistics().kernels_launched, before.kernels_launched);
  r.state[0].to_vector<float>();
  EXPECT_GT(engine::Session::current().statistics().kernels_launched, before.kernels_launched);
}

// States that are given on unchanged, exchanged, or replaced by constants and inputs.
TEST(Scan, StatesMayChangePlaces) {
  const auto step = [](const std::vector<Tensor>& s, const std::vector<Tensor>& x) {
    return ScanResult{{s[1], s[0], s[2], x[0], Tensor::full({3}, 7.0)}, {s[0], s[0], s[3] + s[4]}};
  };
  std::vector<Tensor> state;
  for (int i = 0; i < 5; ++i) state.push_back(wave({3}, i));
  const Tensor x = wave({5, 3}, 9);
  expect_same(scan(step, state, {x}), unrolled(step, state, {x}), 0);
  expect_same(scan(step, state, {x}, true), unrolled(step, state, {x}, true), 0);
}

TEST(Scan, NumbersThatAreNotFiniteStayInTheirStep) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::from<float>({1, inf, -0.0F, 3}, {4});
  const auto step = [](const std::vector<Tensor>& s, const std::vector<Tensor>& in) {
    return ScanResult{{s[0] + 1}, {in[0] * s[0]}};
  };
  const ScanResult r = scan(step, {Tensor::from<float>({0}, Shape{})}, {x});
  const auto values = r.outputs[0].to_vector<float>();
  EXPECT_EQ(values[0], 0);
  EXPECT_EQ(values[1], inf);
  EXPECT_TRUE(std::signbit(values[2]));
  EXPECT_EQ(values[3], 9);
}

TEST(Scan, LoopsStandInsideOfLoops) {
  const Tensor w = wave({3, 3}, 0.1);
  const auto inner = [&](const std::vector<Tensor>& s, const std::vector<Tensor>& x) {
    const Tensor h = (matmul(s[0], w) + x[0]).sin();
    return ScanResult{{h}, {h * 2}};
  };
  const auto outer = [&](auto&& loop) {
    return [&, loop](const std::vector<Tensor>& s, const std::vector<Tensor>& x) {
      const ScanResult r = loop(inner, std::vector{s[0] * 0.5}, std::vector{x[0]}, false);
      return ScanResult{{r.state[0] + r.outputs[0].sum(0)}, {r.outputs[0]}};
    };
  };
  const Tensor x = wave({3, 4, 2, 3}, 0.3), h = wave({2, 3}, 0.5);
  expect_same(scan(outer(scan), {h}, {x}), unrolled(outer(unrolled), {h}, {x}), 1e-5);
  const auto gradients = [&](const ScanResult& r) {
    return gradient(r.state[0].sum() + (r.outputs[0] * r.outputs[0]).sum(), {x, h, w});
  };
  const auto one = gradients(scan(outer(scan), {h}, {x}));
  const auto other = gradients(unrolled(outer(unrolled), {h}, {x}));
  for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], other[i], 1e-3);
}

TEST(Scan, EveryFloatIsAState) {
  for (const DType dtype : {DType::F16, DType::BF16, DType::F64}) {
    const Plain step(dtype);
    const Tensor x = wave({5, 2, 3}, 0.3, dtype), h = wave({2, 5}, 0.4, dtype);
    const double tolerance = dtype == DType::F64 ? 1e-6 : dtype == DType::F16 ? 4e-3 : 4e-2;
    const auto gradients = [&](const ScanResult& r) {
      return gradient(r.outputs[0].sum(), {x, h, step.w, step.u});
    };
    const ScanResult a = scan(step, {h}, {x}), b = unrolled(step, {h}, {x});
    EXPECT_EQ(a.state[0].dtype(), dtype);
    expect_same(a, b, tolerance);
    const auto one = gradients(a), other = gradients(b);
    for (size_t i = 0; i < one.size(); ++i) {
      EXPECT_EQ(one[i].dtype(), dtype);
      expect_near(one[i], other[i], 8 * tolerance);
    }
  }
}

// ---- One body for every length ----

TEST(Scan, TheBodyIsPlannedAndCompiledOnce) {
  engine::Session& session = engine::Session::current();
  const Plain step;
  const Tensor h = wave({2, 5}, 0.4).realize();
  const auto run = [&](int64_t length) {
    return scan(step, {h}, {Tensor::zeros({length, 2, 3})}).state[0].to_vector<float>();
  };
  run(1);
  const size_t bodies = session.loops().size();
  session.reset_statistics();
  for (int64_t length = 2; length <= 64; ++length) run(length);
  EXPECT_EQ(session.loops().size(), bodies);
  EXPECT_EQ(session.statistics().plans_made, 63U);  // those around the loop: none of its body
}

TEST(Scan, OneRecordingServesEveryVariableLength) {
  engine::Session& session = engine::Session::current();
  const Plain step;
  const Tensor h = wave({2, 5}, 0.4).realize();
  const Variable time("time", 1, 64);
  const auto run = jit([&](const Tensor& x) {
    const ScanResult r = scan(step, {h}, {x});
    return std::vector<Tensor>{r.state[0], r.outputs[0]};
  });
  run(time.fit(wave({3, 2, 3}, 0), 0));
  run(time.fit(wave({4, 2, 3}, 0), 0));
  session.reset_statistics();
  for (int64_t length = 1; length <= 64; ++length) {
    const Tensor x = wave({length, 2, 3}, static_cast<double>(length));
    const auto got = run(time.fit(x, 0));
    const ScanResult expected = unrolled(step, {h}, {x});
    if (length > 8) continue;
    expect_near(got[0], expected.state[0], 1e-5);
    expect_near(got[1], expected.outputs[0], 1e-5);
  }
  EXPECT_EQ(run.recordings(), 1U);
}

TEST(Scan, VariableLengthsHaveGradientsInBothDirections) {
  const Plain step;
  const Tensor h = wave({2, 5}, 0.4);
  const Variable time("time", 0, 9);
  for (const bool reverse : {false, true})
    for (const int64_t length : {1, 4, 9}) {
      const Tensor x = wave({length, 2, 3}, 0.3).realize(), fitted = time.fit(x, 0);
      const auto gradients = [&](const ScanResult& r, const Tensor& in) {
        return gradient(r.state[0].exp().sum() + (r.outputs[0] * r.outputs[0]).sum(),
                        {in, h, step.w, step.u});
      };
      const auto one = gradients(scan(step, {h}, {fitted}, reverse), fitted);
      const auto other = gradients(unrolled(step, {h}, {x}, reverse), x);
      for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], other[i], 1e-4);
    }
  const Tensor none = time.limit(wave({9, 2, 3}, 0.3), 0, 0);
  expect_near(scan(step, {h}, {none}).state[0], h, 0);
  expect_near(gradient(scan(step, {h}, {none}).state[0].sum(), {h})[0], Tensor::ones({2, 5}), 0);
}

// ---- What a step must not do ----

TEST(Scan, SaysWhatAStepMustNotDo) {
  const Tensor h = wave({2}, 0), x = wave({3, 2}, 1);
  Tensor kept = wave({2}, 2).contiguous();
  const auto said = [&](const ScanStep& step) {
    return message_of([&] { scan(step, {h}, {x}).state[0].realize(); });
  };
  EXPECT_THAT(said([](const Tensors& s, const Tensors&) { return ScanResult{{s[0].sum()}, {}}; }),
              HasSubstr("returns state 0 as f32 (), and got it as f32 (2,)"));
  EXPECT_THAT(said([](const Tensors& s, const Tensors&) {
                return ScanResult{{s[0].cast(DType::I32)}, {}};
              }),
              HasSubstr("returns state 0 as i32 (2,), and got it as f32 (2,)"));
  const std::string elsewhere = h.device().starts_with("REFERENCE") ? "CPU" : "REFERENCE";
  EXPECT_THAT(said([&](const Tensors& s, const Tensors&) {
                return ScanResult{{s[0].to(elsewhere).to(h.device())}, {}};
              }),
              HasSubstr("copies from a device to another one"));
  EXPECT_THAT(said([](const Tensors&, const Tensors&) { return ScanResult{}; }),
              HasSubstr("returns 0 states, and got 1"));
  EXPECT_THAT(said([](const Tensors& s, const Tensors&) {
                return ScanResult{{s[0] + Tensor::rand({2})}, {}};
              }),
              HasSubstr("draws random numbers"));
  EXPECT_THAT(said([&](const Tensors& s, const Tensors&) {
                kept.assign(s[0]);
                return ScanResult{s, {}};
              }),
              HasSubstr("assigns to a tensor"));
  EXPECT_THAT(said([](const Tensors& s, const Tensors&) {
                s[0].to_vector<float>();
                return ScanResult{s, {}};
              }),
              HasSubstr("the step of a scan"));
  EXPECT_THAT(message_of([&] { scan(Plain(), {h}, {}); }), HasSubstr("no inputs"));
  EXPECT_THAT(message_of([&] { scan(Plain(), {h}, {x, wave({4}, 0)}); }),
              HasSubstr("first axes differ"));
}

}  // namespace
