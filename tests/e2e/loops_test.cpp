// User-written loops: after the first few iterations, each one reuses its plan and launches the
// same number of kernels.
#include <gmock/gmock.h>
#include <plugrad/plugrad.h>

#include <cmath>

#include "engine/session.h"

using namespace plugrad;

namespace {

struct Work {
  uint64_t plans_made, kernels;
  bool operator==(const Work&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Work& work) {
  return out << work.plans_made << " plans made, " << work.kernels << " kernels";
}

/// The cost of each iteration.
template <class Step>
std::vector<Work> iterate(int count, Step step) {
  std::vector<Work> all;
  engine::Session& session = engine::Session::current();
  for (int i = 0; i < count; ++i) {
    const auto before = session.statistics();
    step(i);
    const auto now = session.statistics();
    all.push_back(
        {now.plans_made - before.plans_made, now.kernels_launched - before.kernels_launched});
  }
  return all;
}

/// Fails if an iteration after the first `first` makes a plan, launches more than `most` kernels,
/// or a different number than the iteration `period` before.
void expect_steady(const std::vector<Work>& work, uint64_t most, size_t period = 1,
                   size_t first = 3) {
  for (size_t i = std::max(first, 3 * period); i < work.size(); ++i) {
    EXPECT_EQ(work[i].plans_made, 0u) << "iteration " << i;
    EXPECT_LE(work[i].kernels, most) << "iteration " << i;
    if (i < first + period) continue;
    EXPECT_EQ(work[i], work[i - period]) << "iteration " << i;
  }
}

Tensor input(int64_t rows, int64_t columns, int seed) {
  std::vector<float> values;
  for (int64_t i = 0; i < rows * columns; ++i)
    values.push_back(std::sin(0.1f * static_cast<float>(i + seed)));
  return Tensor::from(values, {rows, columns});
}

struct Mlp {
  nn::Sequential net{nn::Linear(6, 8), relu, nn::Linear(8, 1)};
  optim::Adam opt{nn::parameters(net), {.lr = 0.01}};

  Tensor loss(int i, int64_t rows = 5) const { return net(input(rows, 6, i)).square().mean(); }
  Tensor train(int i, int64_t rows = 5) {
    opt.zero_grad();
    const Tensor now = loss(i, rows);
    now.backward();
    opt.step();
    return now;
  }
};

// Training ------------------------------------------------------------------------------------

TEST(Loops, TrainingOfAnMlp) {
  Mlp mlp;
  expect_steady(iterate(8, [&](int i) { mlp.train(i).item<float>(); }), 7);
  Mlp again;  // same structure
  const auto work = iterate(3, [&](int i) { again.train(i).item<float>(); });
  for (const Work& w : work) EXPECT_EQ(w.plans_made, 0u);
}

TEST(Loops, ALearningRateOfEachStep) {
  Mlp mlp;
  expect_steady(iterate(8,
                        [&](int i) {
                          mlp.opt.set_learning_rate(0.01 / (i + 1));
                          mlp.train(i);
                        }),
                7);
}

TEST(Loops, ALastBatchThatIsSmaller) {
  Mlp mlp;
  expect_steady(iterate(12, [&](int i) { mlp.train(i, i % 3 == 2 ? 2 : 5).item<float>(); }), 7, 3);
}

TEST(Loops, TrainingOfAnLstm) {
  nn::LSTMCell cell(6, 9);
  nn::Linear out(9, 1);
  std::vector<Tensor> parameters = nn::parameters(cell);
  for (const Tensor& p : nn::parameters(out)) parameters.push_back(p);
  optim::AdamW opt(parameters, {.lr = 0.01});
  expect_steady(iterate(6,
                        [&](int i) {
                          opt.zero_grad();
                          nn::LSTMCell::State state;
                          for (int t = 0; t < 4; ++t) state = cell(input(5, 6, i + t), state);
                          const Tensor loss = out(state.h).square().mean();
                          loss.backward();
                          const Tensor norm = optim::clip_grad_norm(opt.parameters(), 0.5);
                          opt.step();
                          loss.item<float>();
                          norm.item<float>();
                        }),
                60);
}

TEST(Loops, AVaeWithAGradientPenalty) {
  nn::Linear encode(6, 4), decode(2, 6);
  std::vector<Tensor> parameters = nn::parameters(encode);
  for (const Tensor& p : nn::parameters(decode)) parameters.push_back(p);
  optim::SGD opt(parameters, {.lr = 0.01, .momentum = 0.9});
  expect_steady(iterate(6,
                        [&](int i) {
                          opt.zero_grad();
                          const Tensor x = input(5, 6, i).requires_grad_();
                          const Tensor code = encode(x);
                          const Tensor mean = code.slice(1, Slice(0, 2));
                          const Tensor spread = code.slice(1, Slice(2, 4)).exp();
                          const Tensor y = decode(mean + spread * Tensor::randn({5, 2}));
                          const Tensor slope = gradient(y.sum(), {x})[0];
                          const Tensor loss = (y - x.detach()).square().mean() +
                                              (slope.square().sum(1).sqrt() - 1).square().mean();
                          loss.backward();
                          opt.step();
                          loss.item<float>();
                        }),
                40);
}

TEST(Loops, TwoNetworksInAlternation) {
  Mlp a, b;
  nn::Linear make(6, 6);
  optim::SGD opt(nn::parameters(make), {.lr = 0.01});
  expect_steady(iterate(6,
                        [&](int i) {
                          const Tensor made = make(input(5, 6, i));
                          a.opt.zero_grad();
                          const Tensor judged = (a.net(made.detach()) + 1).square().mean();
                          judged.backward();
                          a.opt.step();
                          opt.zero_grad();
                          const Tensor loss = (a.net(made) - 1).square().mean();
                          loss.backward();
                          opt.step();
                          b.train(i).item<float>();
                          loss.item<float>();
                          judged.item<float>();
                        }),
                40);
}

// Other results of the loop
// ------------------------------------------------------------------------

TEST(Loops, ATotalThatIsReadAtTheEnd) {
  Mlp mlp;
  Tensor total = Tensor::zeros({});
  double expected = 0;
  expect_steady(iterate(9,
                        [&](int i) {
                          const Tensor loss = mlp.train(i);
                          total += loss.detach();
                          expected += loss.item<double>();
                        }),
                8);
  EXPECT_NEAR(total.item<double>(), expected, 1e-5);
}

TEST(Loops, ATotalThatIsReadNowAndThen) {
  Mlp mlp;
  Tensor total = Tensor::zeros({});
  expect_steady(iterate(20,
                        [&](int i) {
                          total += mlp.loss(i);
                          if (i % 5 == 4) total.item<float>();
                        }),
                10, 5);
}

TEST(Loops, AveragesByAssignment) {
  Mlp mlp;
  nn::Ema ema(mlp.net, 0.9);
  expect_steady(iterate(6,
                        [&](int i) {
                          mlp.train(i);
                          ema.update(mlp.net);
                        }),
                12);
  Tensor average = mlp.opt.parameters()[0].detach() + 0;
  expect_steady(iterate(6,
                        [&](int i) {
                          mlp.train(i);
                          average.assign(average * 0.9 + mlp.opt.parameters()[0].detach() * 0.1);
                          average.sum().item<float>();
                        }),
                10);
}

TEST(Loops, AccuracyAfterTheStep) {
  Mlp mlp;
  const auto work = iterate(8, [&](int i) {
    mlp.opt.zero_grad();
    const Tensor scores = mlp.net(input(5, 6, i));
    scores.square().mean().backward();
    mlp.opt.step();
    (scores > 0).cast(DType::F32).mean().item<float>();
  });
  expect_steady(work, 8);  // the step and one kernel: the network is not evaluated again
}

TEST(Loops, GradientsReadAfterTheStep) {
  Mlp mlp;
  const auto read = [&] {
    std::vector<float> all;
    for (const Tensor& p : mlp.opt.parameters())
      for (float g : p.grad().to_vector<float>()) all.push_back(g);
    return all;
  };
  std::vector<float> before, after;
  mlp.opt.zero_grad();
  mlp.loss(0).backward();
  before = read();
  mlp.opt.step();
  EXPECT_EQ(read(), before);
  expect_steady(iterate(6,
                        [&](int i) {
                          mlp.train(i);
                          after = read();
                        }),
                10);
  EXPECT_EQ(after.size(), before.size());
}

TEST(Loops, GradientsReadBeforeTheStep) {
  Mlp mlp;
  expect_steady(iterate(6,
                        [&](int i) {
                          mlp.opt.zero_grad();
                          mlp.loss(i).backward();
                          for (const Tensor& p : mlp.opt.parameters()) p.grad().to_vector<float>();
                          mlp.opt.step();
                        }),
                13);
}

// State that is carried along
// ----------------------------------------------------------------------

/// sum of s of 24 elements, after n iterations of s = s / 2 + 1 from 0.
double expected_sum(int n) {
  return 24 * 2 * (1 - std::pow(0.5, n));
}

TEST(Loops, StateByAssignment) {
  Tensor state = Tensor::zeros({4, 6});
  expect_steady(iterate(10,
                        [&](int i) {
                          state.assign(state * 0.5 + 1);
                          EXPECT_NEAR(state.sum().item<double>(), expected_sum(i + 1), 1e-4);
                        }),
                2);
}

TEST(Loops, StateAssignedTwiceBeforeARead) {
  Tensor state = Tensor::zeros({4, 6});
  expect_steady(iterate(10,
                        [&](int i) {
                          state.assign(state * 0.5 + 1);
                          const Tensor out = state.sum();
                          state.assign(state * 0.5 + 1);
                          EXPECT_NEAR(out.item<double>(), expected_sum(2 * i + 1), 1e-4);
                        }),
                2);
  EXPECT_NEAR(state.sum().item<double>(), expected_sum(20), 1e-4);
}

TEST(Loops, StateByANewTensor) {
  const Tensor w = (Tensor::eye(6) * 0.5).realize();
  Tensor state = Tensor::zeros({4, 6});
  expect_steady(iterate(20,
                        [&](int i) {
                          state = state.matmul(w) + 1;
                          EXPECT_NEAR(state.sum().item<double>(), expected_sum(i + 1), 1e-4);
                        }),
                2, 1, 12);
}

TEST(Loops, StateOfACellWithATape) {
  nn::LSTMCell cell(6, 6);
  nn::LSTMCell::State state;
  expect_steady(iterate(10,
                        [&](int i) {
                          state = cell(input(5, 6, i), state);
                          Tensor::realize(std::vector{state.h, state.c});
                        }),
                8);
}

TEST(Loops, ACacheByAssignment) {
  Tensor cache = Tensor::zeros({16, 6}), x = input(1, 6, 1);
  const Tensor w = input(6, 6, 3).realize(), places = Tensor::arange(16).reshape({16, 1});
  expect_steady(
      iterate(16,
              [&](int i) {
                const Tensor q = x.matmul(w);
                cache.assign(where(places == Tensor::from({i}).reshape({1, 1}), q, cache));
                const Tensor scores = softmax(q.matmul(cache.transpose(0, 1)), 1);
                x = scores.matmul(cache);
                x.sum().item<float>();
              }),
      7, 1, 10);
}

}  // namespace
