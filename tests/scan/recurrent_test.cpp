// Recurrent layers over sequences against PyTorch's values, and their number of compilations.
#include "plugrad/nn.h"
#include "scan/recurrent_vectors.h"
#include "scan/unrolled.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

constexpr int64_t kTime = 5, kBatch = 3, kIn = 4, kHidden = 3;

using Tensors = std::vector<Tensor>;

/// Every parameter as record_recurrent.py has it.
template <class Layer>
void set_parameters(const Layer& layer, DType dtype) {
  double number = 0;
  for (const auto& [name, parameter] : nn::state_dict(layer)) {
    Tensor handle = parameter;
    handle.assign(wave(parameter.shape(), number++, DType::F32).cast(parameter.dtype()));
  }
  Layer& own = const_cast<Layer&>(layer);
  nn::to(own, dtype);
}

void expect_values(const Tensor& t, const std::vector<double>& expected, const std::string& what) {
  const auto values = t.cast(DType::F64).to_vector<double>();
  ASSERT_EQ(values.size(), expected.size()) << what;
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 3e-6) << what;
}

struct Outcome {
  Tensor output;
  Tensors states;
};

Outcome run(const nn::LSTM& layer, const Tensor& x, const Tensors& before, const Tensor& lengths) {
  const auto r = before.empty() ? layer(x, {}, lengths) : layer(x, {before[0], before[1]}, lengths);
  return {r.output, {r.state.h, r.state.c}};
}

Outcome run(const nn::GRU& layer, const Tensor& x, const Tensors& before, const Tensor& lengths) {
  const auto r = layer(x, before.empty() ? Tensor() : before[0], lengths);
  return {r.output, {r.state}};
}

template <class Layer>
void check(const RecurrentCase& expected) {
  const Layer layer(kIn, kHidden, expected.options);
  set_parameters(layer, DType::F64);
  const int64_t rows = expected.options.layers * (expected.options.bidirectional ? 2 : 1);
  const Shape shape =
      expected.options.batch_first ? Shape{kBatch, kTime, kIn} : Shape{kTime, kBatch, kIn};
  const Tensor x = wave(shape, 10).cast(DType::F64);
  Tensors before;
  if (expected.has_states)
    for (size_t i = 0; i < expected.states.size(); ++i)
      before.push_back(wave({rows, kBatch, kHidden}, 11 + static_cast<double>(i)).cast(DType::F64));
  const Tensor lengths =
      expected.has_lengths ? Tensor::from<int32_t>({5, 2, 3}, {kBatch}) : Tensor();
  const Outcome got = run(layer, x, before, lengths);
  expect_values(got.output, expected.output, "output");
  Tensor loss = (got.output * wave(got.output.shape(), 20).cast(DType::F64)).sum();
  for (size_t i = 0; i < got.states.size(); ++i) {
    expect_values(got.states[i], expected.states[i], "state");
    const Tensor weight = wave(got.states[i].shape(), 21 + static_cast<double>(i));
    loss = loss + (got.states[i] * weight.cast(DType::F64)).sum();
  }
  Tensors targets = {x};
  targets.insert(targets.end(), before.begin(), before.end());
  for (const Tensor& p : nn::parameters(layer)) targets.push_back(p);
  const Tensors gradients = gradient(loss, targets);
  ASSERT_EQ(gradients.size(), expected.gradients.size());
  for (size_t i = 0; i < gradients.size(); ++i)
    expect_values(gradients[i], expected.gradients[i], "gradient " + std::to_string(i));
}

class Recurrent : public testing::TestWithParam<RecurrentCase> {};

TEST_P(Recurrent, GivesWhatPyTorchGives) {
  if (GetParam().kind == "LSTM")
    check<nn::LSTM>(GetParam());
  else
    check<nn::GRU>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(PyTorch, Recurrent, testing::ValuesIn(kRecurrentCases),
                         [](const auto& each) { return each.param.name; });

TEST(RecurrentLayers, LoadAFileOfPyTorch) {
  const nn::LSTM layer(kIn, kHidden, {.layers = 2, .bidirectional = true});
  nn::load(layer, PLUGRAD_SCAN_FOLDER "/recurrent.safetensors");
  const nn::StateDict state = nn::state_dict(layer);
  ASSERT_EQ(state.size(), 16U);
  EXPECT_EQ(state[4].first, "weight_ih_l0_reverse");
  for (size_t i = 0; i < state.size(); ++i)
    expect_near(state[i].second, wave(state[i].second.shape(), static_cast<double>(i)), 1e-6);
}

TEST(RecurrentLayers, AreTheirCellsInALoop) {
  const nn::GRU layer(kIn, kHidden);
  nn::GRUCell cell(kIn, kHidden);
  const auto& own = layer.weights.directions[0];
  cell.weight_ih = own.weight_ih, cell.weight_hh = own.weight_hh;
  cell.bias_ih = own.bias_ih, cell.bias_hh = own.bias_hh;
  const Tensor x = wave({kTime, kBatch, kIn}, 1);
  const auto got = layer(x);
  Tensor h;
  for (int64_t t = 0; t < kTime; ++t) {
    h = cell(x[t], h);
    expect_near(got.output[t], h, 1e-6);
  }
  // Without a batch, the same of one row.
  const auto single = layer(x[{Slice(), 1}]);
  expect_near(single.output, got.output[{Slice(), 1}], 1e-6);
  EXPECT_EQ(single.state.shape(), (Shape{1, kHidden}));
}

/// The outputs of a simple recurrent network from zeros, (time, hidden), for one row of x.
std::vector<double> steps_of(const nn::RecurrentWeights::Direction& w, const Tensor& x, bool relu) {
  const auto in = x.to_vector<double>(), wi = w.weight_ih.to_vector<double>();
  const auto wh = w.weight_hh.to_vector<double>(), bi = w.bias_ih.to_vector<double>();
  const auto bh = w.bias_hh.to_vector<double>();
  std::vector<double> h(kHidden, 0), all;
  for (size_t t = 0; t < kTime; ++t) {
    std::vector<double> next;
    for (size_t i = 0; i < kHidden; ++i) {
      double sum = bi[i] + bh[i];
      for (size_t k = 0; k < kIn; ++k) sum += wi[i * kIn + k] * in[t * kIn + k];
      for (size_t k = 0; k < kHidden; ++k) sum += wh[i * kHidden + k] * h[k];
      next.push_back(relu ? std::max(sum, 0.0) : std::tanh(sum));
    }
    h = next;
    all.insert(all.end(), h.begin(), h.end());
  }
  return all;
}

TEST(RecurrentLayers, ASimpleOneIsElmansEquation) {
  for (const bool relu : {false, true}) {
    const nn::RNN layer(kIn, kHidden, {}, relu ? "relu" : "tanh");
    set_parameters(layer, DType::F32);
    const Tensor x = wave({kTime, kIn}, 1);
    const auto result = layer(x);
    const std::vector<double> expected = steps_of(layer.weights.directions[0], x, relu);
    expect_values(result.output, expected, "output");
    expect_values(result.state, {expected.end() - kHidden, expected.end()}, "state");
    nn::RNNCell cell(kIn, kHidden, true, relu ? "relu" : "tanh");
    nn::load_state_dict(cell, {{"weight_ih", layer.weights.directions[0].weight_ih},
                               {"weight_hh", layer.weights.directions[0].weight_hh},
                               {"bias_ih", layer.weights.directions[0].bias_ih},
                               {"bias_hh", layer.weights.directions[0].bias_hh}});
    Tensor h;
    for (int64_t t = 0; t < kTime; ++t) expect_near(h = cell(x[t], h), result.output[t], 1e-6);
  }
  EXPECT_EQ(
      nn::RNN(kIn, kHidden, {.layers = 2, .bidirectional = true})(wave({kTime, kBatch, kIn}, 0))
          .state.shape(),
      (Shape{4, kBatch, kHidden}));
  EXPECT_EQ(nn::RNN(1, 2)(Tensor::arange(3).reshape({3, 1, 1})).output.dtype(), DType::F32);
  EXPECT_THAT(message_of([] { nn::RNN(kIn, kHidden, {}, "gelu"); }),
              HasSubstr("[RNN] nonlinearity \"gelu\" is unknown"));
}

TEST(RecurrentLayers, ARowOfLengthNoneKeepsItsState) {
  const nn::LSTM layer(kIn, kHidden, {.bidirectional = true});
  const Tensor h = wave({2, 2, kHidden}, 1), c = wave({2, 2, kHidden}, 2);
  const auto r = layer(wave({kTime, 2, kIn}, 3), {h, c}, Tensor::from<int32_t>({0, 4}, {2}));
  expect_near(r.state.h[{Slice(), 0}], h[{Slice(), 0}], 0);
  expect_near(r.state.c[{Slice(), 0}], c[{Slice(), 0}], 0);
  expect_near(r.output[{Slice(), 0}], Tensor::zeros({kTime, 2 * kHidden}), 0);
  expect_near(r.output[{4, 1}], Tensor::zeros({2 * kHidden}), 0);
}

// Training on sequences of every length from 1 to 64: the first length compiles, and a recording.
TEST(RecurrentLayers, TrainOnEveryLengthWithOneRecording) {
  engine::Session& session = engine::Session::current();
  nn::LSTM layer(kIn, kHidden);
  set_parameters(layer, DType::F32);
  optim::SGD opt(nn::parameters(layer), {.lr = 0.1});
  const Variable time("time", 1, 64);
  const auto train = jit([&](const Tensor& x) {
    opt.zero_grad();
    const Tensor loss = layer(x).output.square().mean();
    loss.backward();
    opt.step();
    return loss;
  });
  const auto step = [&](int64_t length) {
    return train(time.fit(wave({length, kBatch, kIn}, 0.3), 0)).item<float>();
  };
  const float first = step(5);
  step(6);
  session.reset_statistics();
  for (int64_t length = 1; length <= 64; ++length) step(length);
  EXPECT_EQ(session.statistics().kernels_compiled, 0U);
  EXPECT_EQ(session.statistics().plans_made, 0U);
  EXPECT_EQ(train.recordings(), 1U);
  EXPECT_LT(step(5), first);
}

// Fixed lengths have separate kernels around the loop, and share those of the step.
TEST(RecurrentLayers, EveryLengthRunsTheSameStep) {
  engine::Session& session = engine::Session::current();
  const nn::LSTM layer(kIn, kHidden);
  const auto kernels = [&](int64_t length) {
    const Tensor x = wave({length, kBatch, kIn}, 0.3).realize();
    const uint64_t before = session.statistics().kernels_compiled;
    layer(x).output.realize();
    return session.statistics().kernels_compiled - before;
  };
  session.clear_caches();  // other tests may have compiled the step
  const uint64_t first = kernels(7);
  for (const int64_t length : {8, 9, 33}) EXPECT_LT(kernels(length), first) << length;
}

TEST(RecurrentLayers, SayWhatDoesNotFit) {
  const nn::LSTM layer(kIn, kHidden);
  const Tensor x = wave({kTime, kBatch, kIn}, 0);
  EXPECT_THAT(message_of([&] { layer(wave({kTime, kBatch, 7}, 0)); }),
              HasSubstr("[LSTM] x is (5, 3, 7); it must be (time, batch, 4)"));
  EXPECT_THAT(message_of([&] { layer(x, {.h = wave({2, kBatch, kHidden}, 0), .c = {}}); }),
              HasSubstr("a state is (2, 3, 3)"));
  EXPECT_THAT(message_of([&] { layer(x, {}, Tensor::ones({4}, DType::I32)); }),
              HasSubstr("lengths are (4,); a batch of 3 needs (3,)"));
  EXPECT_THAT(message_of([&] { layer(x, {}, Tensor::ones({3})); }), HasSubstr("no integers"));
  const auto of_length = [&](int32_t length) {
    return message_of([&] { layer(x, {}, Tensor::from(std::vector<int32_t>{0, 5, length})); });
  };
  EXPECT_THAT(of_length(6), HasSubstr("[LSTM] length 6"));
  EXPECT_THAT(of_length(-1), HasSubstr("[LSTM] length -1"));
  EXPECT_NO_THROW(layer(x, {}, Tensor::from(std::vector<int32_t>{0, 3, kTime})));
  EXPECT_THAT(message_of([] { nn::GRU(kIn, kHidden, {.dropout = 1.5}); }),
              HasSubstr("[GRU] a dropout of 1.5"));
}

}  // namespace
