// Layers against values of PyTorch 2.13 and plain arithmetic.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "near.h"
#include "plugrad/nn.h"
#include "scratch_folder.h"

using namespace plugrad;
using testing::HasSubstr;

namespace {

// (2, 3, 2, 2): i^1.5 / 10.
Tensor powers() {
  std::vector<float> values;
  for (int i = 0; i < 24; ++i) values.push_back(std::pow(static_cast<float>(i), 1.5f) / 10);
  return Tensor::from(values, {2, 3, 2, 2});
}

void set(Tensor tensor, const std::vector<float>& values) {
  tensor.assign(Tensor::from(values, tensor.shape()));
}

}  // namespace

TEST(Linear, IsTheProductWithTheTransposedWeightPlusBias) {
  nn::Linear layer(3, 2);
  set(layer.weight, {1, 2, 3, 4, 5, 6});
  set(layer.bias, {10, 20});
  expect_near(layer(Tensor::from<float>({{1, 0, -1}})), {8, 18});
  EXPECT_FALSE(nn::Linear(3, 2, false).bias.defined());
}

TEST(Linear, BeginsUniformWithinTheBound) {
  Tensor::manual_seed(3);
  nn::Linear layer(64, 200);
  std::vector<float> weight = layer.weight.to_vector<float>();
  auto [least, most] = std::minmax_element(weight.begin(), weight.end());
  EXPECT_GE(*least, -0.125f);
  EXPECT_LE(*most, 0.125f);
  EXPECT_LT(*least, -0.12f);
  EXPECT_GT(*most, 0.12f);
  EXPECT_TRUE(layer.weight.requires_grad());
}

TEST(Linear, RefusesAnotherWidth) {
  nn::Linear layer(3, 2);
  EXPECT_THAT(user_error([&] { layer(Tensor::ones({4, 5})); }),
              HasSubstr("[Linear] x is (4, 5), but the layer takes 3"));
}

TEST(Conv2d, HasOneWeightAGroup) {
  nn::Conv2d layer(4, 6, {3, 5}, {.groups = 2});
  EXPECT_EQ(layer.weight.shape(), (Shape{6, 2, 3, 5}));
  EXPECT_EQ(layer(Tensor::ones({1, 4, 8, 8})).shape(), (Shape{1, 6, 6, 4}));
  EXPECT_THAT(user_error([] { nn::Conv2d(4, 6, 3, {.groups = 3}); }),
              HasSubstr("4 channels to 6 in 3 groups"));
}

TEST(ConvLayers, SayWhatIsWrong) {
  EXPECT_THAT(user_error([] { nn::Conv3d(1, 1, {2, 2}); }),
              HasSubstr("[Conv3d] a kernel of (2, 2); give one positive size, or 3"));
  EXPECT_THAT(user_error([] { nn::Conv1d(1, 1, 0); }), HasSubstr("[Conv1d] a kernel of (0,)"));
  EXPECT_THAT(user_error([] { nn::ConvTranspose2d(3, 4, 2, {.groups = 2}); }),
              HasSubstr("[ConvTranspose2d] 3 channels to 4 in 2 groups"));
  EXPECT_THAT(user_error([] { nn::Conv2d(1, 1, 2)(Tensor::ones({1, 2, 2})); }),
              HasSubstr("takes (n, channels) and 2 more axes"));
}

TEST(BatchNorm, TrainsWithTheBatchAndFollowsItsStatistics) {
  nn::BatchNorm layer(3);
  set(layer.weight, {1, 2, -1});
  set(layer.bias, {0, 0.5, 1});
  Tensor y = layer(powers());
  expect_near(y.flatten()[Slice(0, 6)],
              {-1.075261f, -1.033894f, -0.9582566f, -0.8603101f, -1.798131f, -1.59055f});
  expect_near(layer.running_mean, {0.2599299f, 0.43209621f, 0.64612895f});
  expect_near(layer.running_var, {1.5678451f, 1.9730616f, 2.3641989f});
}

TEST(BatchNorm, EvaluatesWithTheRunningStatisticsAndLeavesThem) {
  nn::BatchNorm layer(3);
  set(layer.weight, {1, 2, -1});
  set(layer.bias, {0, 0.5, 1});
  layer(powers()).realize();
  std::vector<float> before = layer.running_mean.to_vector<float>();
  {
    nn::TrainingScope evaluation(false);
    Tensor y = layer(powers()).flatten();
    expect_near(y[Slice(0, 3)], {-0.2075885f, -0.1277252f, 0.01829891f});
    expect_near(y[Slice(-3, {})], {-4.838507f, -5.290839f, -5.753573f});
  }
  EXPECT_EQ(layer.running_mean.to_vector<float>(), before);
  EXPECT_TRUE(nn::is_training());
}

TEST(BatchNorm, RefusesAnotherNumberOfChannelsAndOneValueAChannel) {
  nn::BatchNorm layer(3);
  EXPECT_THAT(user_error([&] { layer(Tensor::ones({2, 4, 2, 2})); }),
              HasSubstr("3 channels on axis 1"));
  EXPECT_THAT(user_error([&] { layer(Tensor::ones({1, 3})); }), HasSubstr("no variance"));
}

TEST(LayerNorm, NormalisesTheLastAxes) {
  nn::LayerNorm layer({2, 2});
  set(layer.weight, {1, 2, 3, 4});
  set(layer.bias, {0.5f, 0.5f, 0.5f, 0.5f});
  expect_near(layer(powers()).flatten()[Slice(0, 8)],
              {-0.6408633f, -0.770388f, 1.368156f, 6.446687f, -0.7991427f, -0.4778092f, 1.721001f,
               6.024189f});
  EXPECT_THAT(user_error([&] { layer(Tensor::ones({3, 2})); }),
              HasSubstr("last axes must be (2, 2)"));
}

TEST(Dropout, KeepsTheMeanInTrainingAndEverythingOtherwise) {
  Tensor::manual_seed(5);
  nn::Dropout layer(0.25);
  std::vector<float> y = layer(Tensor::ones({10000})).to_vector<float>();
  auto zeros = static_cast<double>(std::count(y.begin(), y.end(), 0.0f));
  EXPECT_NEAR(zeros, 2500, 150);
  EXPECT_NEAR(*std::max_element(y.begin(), y.end()), 4.0 / 3.0, 1e-6);
  nn::TrainingScope evaluation(false);
  expect_near(layer(Tensor::ones({3})), {1, 1, 1});
}

TEST(Embedding, TakesRows) {
  nn::Embedding layer(4, 2);
  set(layer.weight, {0, 1, 10, 11, 20, 21, 30, 31});
  expect_near(layer(Tensor::from<int>({2, 0})).flatten(), {20, 21, 0, 1});
}
