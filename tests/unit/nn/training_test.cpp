// Parameter groups, clipping, learning-rate schedules, saving and resuming; and Sequential.
#include <gmock/gmock.h>

#include <cmath>
#include <limits>

#include "engine/session.h"
#include "near.h"
#include "plugrad/nn.h"
#include "plugrad/optim.h"
#include "scratch_folder.h"
#include "tensor/handles.h"

using namespace plugrad;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

Tensor leaf(const std::vector<float>& values) {
  return Tensor::from(values).requires_grad_();
}

Tensor input() {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(std::sin(0.3f * static_cast<float>(i)));
  return Tensor::from(values, {8, 3});
}

nn::Sequential network() {
  return nn::Sequential(nn::Linear(3, 4), nn::BatchNorm(4), relu, nn::Linear(4, 2));
}

template <class Optimiser>
void train(const nn::Sequential& net, Optimiser& opt, const optim::Schedule& rate, int64_t begin,
           int64_t end) {
  for (int64_t step = begin; step < end; ++step) {
    opt.template get<0>().set_learning_rate(rate(step));
    opt.zero_grad();
    (net(input()) - 0.5).square().mean().backward();
    opt.step();
  }
}

auto two_optimisers(const nn::Sequential& net) {
  std::vector<Tensor> matrices, others;
  for (const Tensor& p : nn::parameters(net)) (p.ndim() > 1 ? matrices : others).push_back(p);
  return optim::OptimizerGroup(optim::Muon(matrices, {.lr = 0.02}),
                               optim::AdamW(others, {.lr = 0.01}));
}

std::vector<float> all_values(const nn::Sequential& net) {
  std::vector<float> all;
  for (const auto& [name, tensor] : nn::state_dict(net))
    for (float value : tensor.to_vector<float>()) all.push_back(value);
  return all;
}

}  // namespace

TEST(Sequential, NamesStateByPlaceAndTakesLambdas) {
  nn::Sequential net(
      nn::Linear(3, 2), relu, [](const Tensor& x) { return x * 2; },
      nn::Sequential(nn::Embedding(1, 1), nn::Dropout()));
  std::vector<std::string> names;
  for (const auto& [name, tensor] : nn::state_dict(net)) names.push_back(name);
  EXPECT_THAT(names, ElementsAre("0.weight", "0.bias", "3.0.weight"));
  EXPECT_EQ(net.size(), 4u);

  nn::Linear layer(2, 1, false);
  layer.weight.assign(Tensor::from<float>({{1, -2}}));
  nn::Sequential small(layer, [](const Tensor& x) { return x + 1; }, relu);
  expect_near(small(Tensor::from<float>({{1, 0}, {0, 1}})), {2, 0});
  layer.weight.assign(Tensor::from<float>({{3, 3}}));  // does not change the copy
  expect_near(small(Tensor::from<float>({{1, 0}, {0, 1}})), {2, 0});
  Tensor weight = nn::state_dict(small)[0].second;
  weight.assign(Tensor::from<float>({{3, 3}}));
  expect_near(small(Tensor::from<float>({{1, 0}, {0, 1}})), {4, 4});
  EXPECT_EQ(tensor::state_of(nn::Sequential()(layer.weight)), tensor::state_of(layer.weight));
}

TEST(Sequential, TakesFunctionsByTheirNameThatHaveSeveralForms) {
  nn::Sequential net(softmax, gelu, nn::Linear(2, 2), [](const Tensor& x) { return x + 1; });
  EXPECT_EQ(net.size(), 4u);
  EXPECT_EQ(nn::state_dict(net).size(), 2u);
  const Tensor x = Tensor::from<float>({{1, -2}});
  nn::Sequential activations(gelu);
  activations.add(softmax);
  EXPECT_EQ(activations(x).to_vector<float>(), x.gelu().softmax().to_vector<float>());
}

// A copied module has separate parameters and statistics.
TEST(Sequential, AsAFunctionUsesTheLayersThemselves) {
  const nn::Linear first(3, 4), last(4, 1);
  nn::BatchNorm norm(4);
  const nn::TrainingScope training(true);
  sequential(input(), {first, norm, &Tensor::relu, [](const Tensor& x) { return x * 2; }, last})
      .sum()
      .backward();
  EXPECT_TRUE(first.weight.grad().defined());
  EXPECT_TRUE(last.weight.grad().defined());
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 1);
  const std::vector<std::function<Tensor(const Tensor&)>> list = {
      [](const Tensor& x) { return -x; }, &Tensor::abs};
  EXPECT_EQ(sequential(Tensor::from({1.0f}), list).item<float>(), 1.0f);
}

TEST(RandomState, IsSavedAndRestored) {
  Tensor::manual_seed(7);
  const Tensor first = Tensor::rand({3});
  const RandomState state = Tensor::random_state();
  EXPECT_EQ(state.seed, 7u);
  EXPECT_EQ(state.counter, 3u);
  const auto drawn = Tensor::rand({5}).to_vector<float>();
  EXPECT_NE(Tensor::rand({5}).to_vector<float>(), drawn);
  Tensor::set_random_state(state);
  EXPECT_EQ(Tensor::rand({5}).to_vector<float>(), drawn);
}

TEST(MixedNumbers, AreOneListOfDoubles) {
  EXPECT_EQ(Tensor::from({1, 2.5}).dtype(), DType::F64);
  EXPECT_EQ(Tensor::from({1, 2.5}).to_vector<double>(), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(Tensor::from({1, 2.5f, -3.0}, {3, 1}).shape(), (Shape{3, 1}));
  EXPECT_EQ(Tensor::from({1, 2}).dtype(), DType::I32);
}

TEST(MixedNumbers, StandInRowsToo) {
  const Tensor rows = Tensor::from({{1, 2.5}, {3, 4u}});
  EXPECT_EQ(rows.dtype(), DType::F64);
  EXPECT_EQ(rows.shape(), (Shape{2, 2}));
  EXPECT_EQ(rows.to_vector<double>(), (std::vector<double>{1, 2.5, 3, 4}));
  EXPECT_EQ(Tensor::from({{1, 2}, {3, 4}}).dtype(), DType::I32);
  EXPECT_THROW(Tensor::from({{1, 2.5}, {3}}), Error);
}

TEST(BatchNorm, CountsItsBatchesAsPyTorchDoes) {
  nn::BatchNorm norm(3);
  norm(input());
  norm(input()).realize();
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 2);
  EXPECT_EQ(norm.num_batches_tracked.shape(), Shape{});
  EXPECT_EQ(norm.num_batches_tracked.dtype(), DType::I64);
  nn::TrainingScope evaluation(false);
  norm(input()).realize();
  EXPECT_EQ(norm.num_batches_tracked.item<int64_t>(), 2);
}

TEST(Loading, NotStrictSkipsWhatDiffersAndSaysSo) {
  nn::Linear layer(2, 2);
  const auto before = layer.bias.to_vector<float>();
  const auto skipped = nn::load_state_dict(
      layer,
      {{"weight", Tensor::ones({2, 2})}, {"bias", Tensor::ones({3})}, {"x", Tensor::ones({1})}},
      nn::Loading::NotStrict);
  expect_near(layer.weight, {1, 1, 1, 1});
  EXPECT_EQ(layer.bias.to_vector<float>(), before);
  ASSERT_EQ(skipped.size(), 2u);
  EXPECT_EQ(skipped[0].kind, nn::StateDifference::Kind::Shape);
  EXPECT_EQ(skipped[0].name, "bias");
  EXPECT_EQ(skipped[0].in_state, "(3,) f32");
  EXPECT_EQ(skipped[1].kind, nn::StateDifference::Kind::Unexpected);
  EXPECT_TRUE(nn::load_state_dict(layer, nn::state_dict(layer)).empty());
}

TEST(Training, ResumedFromFilesIsTheSameToTheLastBit) {
  ScratchFolder folder;
  const std::string net_file = folder.path / "net", opt_file = folder.path / "opt";
  const optim::Schedule rate = optim::warm_up(optim::cosine_rate(0.05, 8), 3);
  nn::Sequential net = network();
  auto opt = two_optimisers(net);
  train(net, opt, rate, 0, 4);
  nn::save(net, net_file);
  nn::save(opt, opt_file);
  train(net, opt, rate, 4, 9);

  nn::Sequential other = network();
  auto resumed = two_optimisers(other);
  EXPECT_NE(all_values(other), all_values(net));
  nn::load(other, net_file);
  nn::load(resumed, opt_file);
  train(other, resumed, rate, 4, 9);
  EXPECT_EQ(all_values(other), all_values(net));
}

TEST(Training, AChangingRatePlansAndCompilesNothingAnew) {
  nn::Sequential net = network();
  auto opt = two_optimisers(net);
  const optim::Schedule rate = optim::cosine_rate(0.05, 20);
  train(net, opt, rate, 0, 1);
  engine::Session& session = engine::Session::current();
  const engine::Statistics before = session.statistics();
  train(net, opt, rate, 1, 12);
  EXPECT_EQ(session.statistics().plans_made, before.plans_made);
  EXPECT_EQ(session.statistics().kernels_compiled, before.kernels_compiled);
}

TEST(Training, AGroupLeavesMembersWithoutGradients) {
  Tensor a = leaf({1, 2}), b = leaf({3, 4});
  optim::OptimizerGroup opt(optim::SGD({a}, {.lr = 1}), optim::SGD({b}, {.lr = 10}));
  a.sum().backward();
  opt.step();
  expect_near(a, {0, 1});
  expect_near(b, {3, 4});
  opt.zero_grad();
  EXPECT_FALSE(a.grad().defined());
}

TEST(Training, ParametersOfHalvesHaveStateInF32) {
  Tensor p = Tensor::from<float>({1, 2}).cast(DType::F16).contiguous().realize();
  p.requires_grad_();
  optim::Adam opt({p}, {.lr = 0.5});
  (p * 1e-4).sum().backward();  // the squares underflow f16
  opt.step();
  EXPECT_EQ(p.dtype(), DType::F16);
  expect_near(p, {0.5, 1.5}, 1e-3);
  EXPECT_EQ(nn::state_dict(opt).front().second.dtype(), DType::F32);
}

TEST(Clip, ByNormScalesAllGradientsTogetherAndReturnsTheNorm) {
  for (double order : {2.0, 1.0, std::numeric_limits<double>::infinity()}) {
    Tensor a = leaf({1, 1}), b = leaf({1}), without = leaf({1});
    (a * Tensor::from<float>({3, 0})).sum().backward();
    (b * -4.0).sum().backward();
    const Tensor norm = optim::clip_grad_norm({a, b, without}, 0.5, order);
    const float expected = order == 2 ? 5 : order == 1 ? 7 : 4;
    expect_near(norm, {expected});
    expect_near(a.grad(), {3 * 0.5f / expected, 0});
    expect_near(b.grad(), {-4 * 0.5f / expected});
    EXPECT_FALSE(without.grad().defined());
  }
  Tensor small = leaf({0.1f});
  small.square().sum().backward();
  optim::clip_grad_norm({small}, 1.0).realize();
  EXPECT_EQ(small.grad().item<float>(), 0.2f);
}

TEST(Clip, ANormThatIsNoNumberSpoilsEveryGradient) {
  Tensor a = leaf({1}), b = leaf({1});
  (a * std::nan("")).sum().backward();
  b.sum().backward();
  EXPECT_TRUE(std::isnan(optim::clip_grad_norm({a, b}, 1.0).item<float>()));
  EXPECT_TRUE(std::isnan(b.grad().item<float>()));
}

TEST(Clip, TheNormIsComputedWithTheStep) {
  Tensor a = leaf({1, 2});
  optim::SGD optimizer({a}, {.lr = 0.1});
  a.square().sum().backward();
  const Tensor norm = optim::clip_grad_norm({a}, 1.0);
  optimizer.step();
  EXPECT_TRUE(norm.is_realized());
  expect_near(norm, {std::sqrt(20.0f)});
}

TEST(Clip, ByValueClampsEachElement) {
  Tensor a = leaf({1, 1, 1});
  (a * Tensor::from<float>({3, -0.25f, -7})).sum().backward();
  optim::clip_grad_value({a}, 0.5);
  expect_near(a.grad(), {0.5f, -0.25f, -0.5f});
}

TEST(Training, SaysWhatIsWrong) {
  EXPECT_THAT(user_error([] { optim::Muon({leaf({1})}); }),
              HasSubstr("[Muon] a parameter (1,) is no matrix"));
  EXPECT_THAT(user_error([] { optim::SGD({leaf({1})}, {.momentum = -1}); }),
              HasSubstr("[SGD] momentum is -1"));
  EXPECT_THAT(user_error([] { optim::Adam({leaf({1})}, {.eps = -1}); }),
              HasSubstr("[Adam] eps is -1"));
  EXPECT_THAT(user_error([] {
                const Tensor p = leaf({1});
                optim::SGD({p, p}, {});
              }),
              HasSubstr("parameter 1, of shape (1,), is given twice"));
  EXPECT_THAT(user_error([] { optim::clip_grad_norm({}, -1); }), HasSubstr("the bound is -1"));
  EXPECT_THAT(user_error([] { optim::clip_grad_norm({}, 1, 0.5); }), HasSubstr("order is 0.5"));
  EXPECT_THAT(user_error([] { optim::clip_grad_value({}, -1); }), HasSubstr("the bound is -1"));
  EXPECT_THAT(user_error([] { optim::cosine_rate(1, 0); }), HasSubstr("[cosine_rate] 0 steps"));
  EXPECT_THAT(user_error([] { optim::step_rate(-1, 3); }), HasSubstr("the rate -1"));
  EXPECT_THAT(user_error([] { optim::constant_rate(1)(-1); }),
              HasSubstr("step -1; steps count from 0"));
  EXPECT_THAT(user_error([] { optim::ReduceOnPlateau(1, {.factor = 2}); }), HasSubstr("factor 2"));
  EXPECT_THAT(user_error([] { nn::GroupNorm(3, 4); }), HasSubstr("4 channels in 3 groups"));
  EXPECT_THAT(user_error([] { nn::GroupNorm(2, 4)(Tensor::ones({1, 3, 2})); }),
              HasSubstr("4 channels on axis 1"));
  EXPECT_THAT(user_error([] { nn::RMSNorm({4})(Tensor::ones({3})); }),
              HasSubstr("last axes must be (4,)"));
  EXPECT_THAT(user_error([] { nn::LayerNorm(Shape{}); }),
              HasSubstr("[LayerNorm] there are no sizes"));
  EXPECT_THAT(user_error([] { nn::LSTMCell(3, 2)(Tensor::ones({4, 2})); }),
              HasSubstr("takes 3 values"));
  EXPECT_THAT(user_error([] { nn::GRUCell(3, 2)(Tensor::ones({4, 3}), Tensor::ones({3, 2})); }),
              HasSubstr("h is (3, 2), but x (4, 3) and the cell need (4, 2)"));
  EXPECT_THAT(user_error([] { nn::MultiHeadAttention(6, 4); }), HasSubstr("width 6 in 4 heads"));
  EXPECT_THAT(user_error([] { nn::MultiHeadAttention(8, 4, {.kv_heads = 3}); }),
              HasSubstr("4 heads share 3"));
  EXPECT_THAT(user_error([] { nn::MultiHeadAttention(4, 2)(Tensor::ones({4})); }),
              HasSubstr("two axes at least"));
}
