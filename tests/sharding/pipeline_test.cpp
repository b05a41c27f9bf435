// Pipelines of stages and micro-batches against the same layers on one device.
#include "sharding/meshes.h"

namespace plugrad {
namespace {

using testing::HasSubstr;

nn::Sequential layers() {
  Tensor::manual_seed(4);
  return nn::Sequential(
      nn::Linear(5, 8), relu, nn::Linear(8, 6), [](const Tensor& x) { return x.tanh(); },
      nn::Linear(6, 3));
}

Tensor square_error(const Tensor& made, const Tensor& wanted) {
  return (made - wanted).square().mean();
}

template <class Net, class Loss>
std::vector<float> trained_in_stages(const Net& net, const Loss& loss_of) {
  optim::Adam adam(nn::parameters(net), {.lr = 0.02});
  std::vector<float> losses;
  for (int step = 0; step < 4; ++step) {
    adam.zero_grad();
    const Tensor loss = loss_of(counting({7, 5}, 0.2 * step, 0.03), counting({7, 3}, -0.5, 0.05));
    loss.backward();
    optim::clip_grad_norm(adam.parameters(), 0.5);
    adam.step();
    losses.push_back(loss.item<float>());
  }
  return losses;
}

TEST(Pipelines, TrainAsTheLayersOnOneDevice) {
  const nn::Sequential plain = layers();
  const std::vector<float> expected = trained_in_stages(
      plain, [&](const Tensor& x, const Tensor& y) { return square_error(plain(x), y); });
  const Mesh mesh = two();
  for (const std::string& last : {std::string("CPU"), std::string("REFERENCE"), mesh.device()})
    for (const int64_t micro_batches : {1, 3, 7}) {
      const nn::Pipeline pipeline(layers(), {{0, "CPU"}, {2, last}}, micro_batches);
      const std::vector<float> actual = trained_in_stages(
          pipeline,
          [&](const Tensor& x, const Tensor& y) { return pipeline.loss(x, y, square_error); });
      for (size_t i = 0; i < expected.size(); ++i)
        EXPECT_NEAR(actual[i], expected[i], 1e-5F * expected[i]) << last << " " << micro_batches;
    }
}

TEST(Pipelines, KeepEachStageOnItsPlace) {
  const nn::Pipeline pipeline(layers(), {{0, "REFERENCE"}, {2, two().device()}, {4, "CPU"}}, 2);
  const nn::StateDict state = nn::state_dict(pipeline);
  ASSERT_EQ(state.size(), 6u);
  EXPECT_EQ(state[0].first, "0.weight");
  EXPECT_EQ(state[1].second.device(), "REFERENCE");
  EXPECT_EQ(state[2].second.device(), two().device());
  EXPECT_EQ(state[5].first, "4.bias");
  EXPECT_EQ(state[5].second.device(), "CPU");
  const Tensor y = pipeline(counting({2, 5}));
  EXPECT_EQ(y.device(), "CPU");
  const std::vector<float> expected = layers()(counting({2, 5})).to_vector<float>();
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(y.to_vector<float>()[i], expected[i], 1e-5F);
}

TEST(Pipelines, SayWhatIsWrong) {
  EXPECT_THAT(error_of([] { nn::Pipeline(layers(), {{1, "CPU"}}, 2); }), HasSubstr("at layer 0"));
  EXPECT_THAT(error_of([] { nn::Pipeline(layers(), {{0, "CPU"}, {5, "CPU"}}, 2); }),
              HasSubstr("stage 1 has the layers [5, 5) of 5"));
  EXPECT_THAT(error_of([] { nn::Pipeline(layers(), {{0, "CPU"}}, 0); }), HasSubstr("1 or more"));
  const nn::Pipeline pipeline(layers(), {{0, "CPU"}}, 4);
  EXPECT_THAT(error_of([&] { pipeline.loss(counting({3, 5}), counting({3, 3}), square_error); }),
              HasSubstr("at least 4, the number of micro-batches"));
}

}  // namespace
}  // namespace plugrad
