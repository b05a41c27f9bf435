// Derivatives of recorded loops: of second order, of integer states, under backward() and jit.
#include "scan/unrolled.h"

using namespace plugrad;

namespace {

using Tensors = std::vector<Tensor>;

TEST(ScanGradient, IsDifferentiatedAgain) {
  const Tensor w = wave({3, 3}, 0.1), x = wave({4, 2, 3}, 0.3), h = wave({2, 3}, 0.5);
  const auto step = [&](const Tensors& s, const Tensors& in) {
    const Tensor next = (matmul(s[0], w) + in[0]).tanh();
    return ScanResult{{next}, {next * in[0]}};
  };
  const auto second = [&](const ScanResult& r) {
    const Tensors first = gradient(r.outputs[0].sum() + r.state[0].exp().sum(), {w, x, h});
    const Tensor norm = (first[0] * first[0]).sum() + (first[1] * first[1]).sum() + first[2].sum();
    return gradient(norm, {w, x, h});
  };
  const Tensors one = second(scan(step, {h}, {x})), other = second(unrolled(step, {h}, {x}));
  for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], other[i], 2e-3);
}

// A captured tensor computed from another captured one: the first one's gradient reaches the second
// once, after the loop.
TEST(ScanGradient, CapturedTensorsMayBeMadeOfEachOther) {
  const Tensor w = wave({3, 3}, 0.1), twice = w * 2, x = wave({4, 2, 3}, 0.3);
  const auto step = [&](const Tensors& s, const Tensors& in) {
    const Tensor h = (matmul(s[0], w) + matmul(in[0], twice.exp())).tanh() + w.sum();
    return ScanResult{{h}, {h * twice[0]}};
  };
  const auto gradients = [&](const ScanResult& r) {
    return gradient(r.outputs[0].square().sum() + r.state[0].sum(), {w, x});
  };
  const Tensor h = wave({2, 3}, 0.5);
  const Tensors one = gradients(scan(step, {h}, {x})), other = gradients(unrolled(step, {h}, {x}));
  for (size_t i = 0; i < one.size(); ++i) expect_near(one[i], other[i], 2e-3);
}

// Gradients at 0.5 of ((1 * k + 2) * k + 4) * k + 8, once as a scalar and once in three columns.
TEST(ScanGradient, FlowsToMarkedTensorsOfConstants) {
  Tensor k = Tensor(0.5f), wide = Tensor::full({3}, 0.5);
  k.requires_grad_();
  wide.requires_grad_();
  const Tensor x = Tensor::from<float>({1, 2, 4, 8});
  for (const Tensor& factor : {k, wide}) {
    const auto step = [&](const Tensors& s, const Tensors& in) {
      return ScanResult{{s[0] * factor + in[0]}, {}};
    };
    const Tensor first = Tensor::zeros(factor.shape());
    const Tensor last = scan(step, {first}, {x}).state[0];
    const float slope = 3 * 0.25f + 2 * 2 * 0.5f + 4;
    const Tensor by_name = gradient(last.sum(), {factor})[0];
    EXPECT_EQ(by_name.to_vector<float>(),
              std::vector<float>(static_cast<size_t>(factor.numel()), slope));
    last.sum().backward();
    EXPECT_EQ(factor.grad().to_vector<float>(), by_name.to_vector<float>());
  }
}

// The gradient of a captured scalar is a sum over all steps, and is differentiable: 6 k + 4.
TEST(ScanGradient, OfASumOverAllSteps) {
  const Tensor k = Tensor::from<float>({0.5f}), x = Tensor::from<float>({1, 2, 4, 8});
  const auto step = [&](const Tensors& s, const Tensors& in) {
    return ScanResult{{s[0] * k.sum() + in[0]}, {}};
  };
  const Tensor last = scan(step, {Tensor::zeros({})}, {x}).state[0];
  const Tensor first = gradient(last, {k})[0];
  EXPECT_EQ(first.to_vector<float>(), std::vector{6.75f});
  const Tensor again = scan(step, {Tensor::zeros({})}, {x}).state[0];
  EXPECT_EQ(gradient(gradient(again, {k})[0], {k})[0].to_vector<float>(), std::vector{7.0f});
}

// A count, which has no gradient, next to a float.
TEST(ScanGradient, PassesByIntegers) {
  const Tensor x = wave({6}, 0.3);
  const auto step = [](const Tensors& s, const Tensors& in) {
    return ScanResult{{s[0] + 1, s[1] * 0.5 + in[0] * s[0].cast(DType::F32)}, {}};
  };
  const Tensors state = {Tensor::from<int32_t>({0}, Shape{}), Tensor::from<float>({1}, Shape{})};
  const Tensors one = gradient(scan(step, state, {x}).state[1], {x, state[1]});
  // s after six steps is 0.5^6 + sum of t * 0.5^(5-t) * x[t].
  std::vector<float> expected;
  for (int t = 0; t < 6; ++t) expected.push_back(static_cast<float>(t * std::pow(0.5, 5 - t)));
  EXPECT_EQ(one[0].to_vector<float>(), expected);
  EXPECT_EQ(one[1].item<float>(), std::pow(0.5F, 6));
}

TEST(ScanGradient, AgreesWithFiniteDifferences) {
  const auto loss = [](const Tensor& w, const Tensor& x) {
    const auto step = [&](const Tensors& s, const Tensors& in) {
      const Tensor h = (s[0] * w + in[0]).sin();
      return ScanResult{{h}, {h * h}};
    };
    const ScanResult r = scan(step, {Tensor::zeros({2}, DType::F64)}, {x}, true);
    return r.outputs[0].sum() + r.state[0].sum();
  };
  const Tensor w = wave({2}, 0.1, DType::F64), x = wave({5, 2}, 0.3, DType::F64);
  const Tensors exact = gradient(loss(w, x), {w, x});
  const double step = 1e-5;
  for (int64_t i = 0; i < 10; ++i) {
    const Tensor by = (Tensor::arange(10) == i).reshape({5, 2}).cast(DType::F64) * step;
    const double slope =
        (loss(w, x + by).item<double>() - loss(w, x - by).item<double>()) / (2 * step);
    EXPECT_NEAR(exact[1].to_vector<double>()[static_cast<size_t>(i)], slope, 1e-8);
  }
  for (int64_t i = 0; i < 2; ++i) {
    const Tensor by = (Tensor::arange(2) == i).cast(DType::F64) * step;
    const double slope =
        (loss(w + by, x).item<double>() - loss(w - by, x).item<double>()) / (2 * step);
    EXPECT_NEAR(exact[0].to_vector<double>()[static_cast<size_t>(i)], slope, 1e-8);
  }
}

// A training step that changes its weights, replayed and run by the host.
TEST(ScanGradient, TrainsInReplays) {
  const auto train = [](bool use_jit) {
    Tensor w = wave({3, 3}, 0.1).realize();
    w.requires_grad_();
    const auto step = [&](const Tensor& x) {
      const ScanResult r = scan(
          [&](const Tensors& s, const Tensors& in) {
            const Tensor h = (matmul(s[0], w) + in[0]).tanh();
            return ScanResult{{h}, {h}};
          },
          {Tensor::zeros({2, 3})}, {x});
      const Tensor loss = (r.outputs[0] - 0.25).square().mean();
      w.zero_grad();
      loss.backward();
      w.assign(w.detach() - w.grad() * 0.5);
      w.zero_grad();
      return loss;
    };
    const auto fast = jit(step);
    std::vector<float> losses;
    for (int i = 0; i < 6; ++i) {
      const Tensor x = wave({5, 2, 3}, i).realize();
      losses.push_back((use_jit ? fast(x) : step(x)).item<float>());
    }
    return losses;
  };
  const auto replayed = train(true), run = train(false);
  for (size_t i = 0; i < run.size(); ++i) EXPECT_NEAR(replayed[i], run[i], 1e-5);
  EXPECT_LT(run.back(), run.front());
}

TEST(ScanGradient, MemoryStaysFlat) {
  Tensor w = wave({3, 3}, 0.1).realize();
  w.requires_grad_();
  const auto step = [&] {
    const ScanResult r = scan(
        [&](const Tensors& s, const Tensors& in) {
          const Tensor h = (matmul(s[0], w) + in[0]).tanh();
          return ScanResult{{h}, {h}};
        },
        {Tensor::zeros({2, 3})}, {wave({5, 2, 3}, 1)});
    r.outputs[0].sum().backward();
    w.grad().realize();
    w.zero_grad();
    engine::Session::current().collect();
    return engine::Session::current().statistics().graph_nodes;
  };
  step();
  const auto nodes = step();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(step(), nodes);
}

}  // namespace
