// End-to-end training, from images to accuracy, on every device that is always available.
#include <gtest/gtest.h>

#include "base/settings.h"
#include "engine/session.h"
#include "mnist_networks.h"
#include "plugrad/plugrad.h"

using namespace plugrad;
using tools::MnistCnn;
using tools::MnistSmall;

namespace {

// Ten random stroke patterns with noise: any number of samples, without files.
data::Dataset strokes(int64_t count, uint64_t seed) {
  Tensor::manual_seed(11);
  std::vector<float> patterns = Tensor::rand({10, 7, 7}).to_vector<float>();
  Tensor::manual_seed(seed);
  std::vector<float> noise = Tensor::rand({count, 784}).to_vector<float>();
  std::vector<uint8_t> images, labels;
  for (int64_t i = 0; i < count; ++i) {
    labels.push_back(static_cast<uint8_t>(i % 10));
    for (int64_t pixel = 0; pixel < 784; ++pixel) {
      auto cell = static_cast<size_t>(i % 10 * 49 + pixel / 28 / 4 * 7 + pixel % 28 / 4);
      float value = (patterns[cell] > 0.5f ? 0.7f : 0.0f) +
                    0.3f * noise[static_cast<size_t>(i * 784 + pixel)];
      images.push_back(static_cast<uint8_t>(value * 255));
    }
  }
  return data::Dataset(std::move(images), std::move(labels), 28, 28);
}

template <class Net>
std::vector<double> train(Net& net, const data::Dataset& set, int64_t batch, int64_t steps,
                          double learning_rate = 1e-3) {
  optim::Adam opt(nn::parameters(net), {.lr = learning_rate});
  std::vector<double> losses;
  for (auto [x, y] : set.batches(batch, {.shuffle = true, .seed = 1, .steps = steps})) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    losses.push_back(loss.item<double>());
  }
  return losses;
}

std::vector<double> losses_on(const std::string& device) {
  std::string before = Device::default_device();
  Device::set_default_device(device);
  Tensor::manual_seed(1);
  MnistSmall net;
  std::vector<double> losses = train(net, strokes(64, 2), 16, 8, 1e-2);
  Device::set_default_device(before);
  return losses;
}

}  // namespace

TEST(Training, TakesTheSameWayOnCpuAndOnTheReference) {
  std::vector<double> cpu = losses_on("CPU"), reference = losses_on("REFERENCE");
  ASSERT_EQ(cpu.size(), reference.size());
  for (size_t step = 0; step < cpu.size(); ++step)
    EXPECT_NEAR(cpu[step], reference[step], 1e-4) << "step " << step;
  EXPECT_LT(cpu.back(), cpu.front());
}

TEST(Training, TheDemosNetworkLearnsAndKeepsWhatItLearned) {
  Tensor::manual_seed(1);
  MnistCnn net;
  data::Dataset train_set = strokes(320, 3), test_set = strokes(100, 4);
  std::vector<double> losses = train(net, train_set, 32, 24);
  EXPECT_LT(losses.back(), 0.5 * losses.front());
  double accuracy = nn::accuracy(net, test_set, 50);
  EXPECT_GT(accuracy, 0.9);

  std::string path = testing::TempDir() + "/plugrad-e2e-net.safetensors";
  nn::save(net, path);
  MnistCnn copy;
  nn::load(copy, path);
  std::remove(path.c_str());
  EXPECT_EQ(nn::accuracy(copy, test_set, 50), accuracy);
}

// A step with Adam: forward, backward and update.
template <typename Loss>
uint64_t kernels_of_step(std::vector<Tensor> parameters, const Loss& loss_of) {
  optim::Adam opt(std::move(parameters));
  engine::Session& session = engine::Session::current();
  uint64_t launched = 0;
  for (int step = 0; step < 2; ++step) {
    const uint64_t before = session.statistics().kernels_launched;
    opt.zero_grad();
    Tensor loss = loss_of();
    loss.backward();
    opt.step();
    loss.template item<double>();
    launched = session.statistics().kernels_launched - before;
  }
  return launched;
}

// Includes packing the operands of convolutions that are read repeatedly, and summing channels in
// two steps.
TEST(Training, AStepOfTheDemosNetworkRunsAtMost63Kernels) {
  Tensor::manual_seed(1);
  MnistCnn net;
  Tensor x = Tensor::rand({512, 1, 28, 28}), y = Tensor::randint({512}, 0, 10);
  Tensor::realize(std::vector{x, y});
  EXPECT_LE(kernels_of_step(nn::parameters(net),
                            [&] { return sparse_categorical_crossentropy(net(x), y); }),
            63u);
}

struct TransformerBlock {
  nn::LayerNorm n1{{256}}, n2{{256}};
  nn::MultiHeadAttention attention{256, 4};
  nn::Linear up{256, 1024}, down{1024, 256};
  PLUGRAD_FIELDS(n1, n2, attention, up, down)
  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(n1(x));
    return h + down(gelu(up(n2(h))));
  }
};

// Each product that contributes to an operand's gradient is a separate kernel.
TEST(Training, AStepOfATransformersBlockRunsAtMost62Kernels) {
  Tensor::manual_seed(1);
  TransformerBlock block;
  Tensor x = Tensor::randn({16, 128, 256}), y = Tensor::randn({16, 128, 256});
  Tensor::realize(std::vector{x, y});
  EXPECT_LE(kernels_of_step(nn::parameters(block), [&] { return mse_loss(block(x), y); }), 62u);
}

TEST(Training, RealDigitsAreLearnedByTheSmallNetwork) {
  if (settings().data_dir.empty()) GTEST_SKIP() << "PLUGRAD_DATA is not set";
  auto [train_set, test_set] = data::mnist({.download = false});
  Tensor::manual_seed(1);
  MnistSmall net;
  train(net, train_set, 256, 120);
  EXPECT_GT(nn::accuracy(net, test_set), 0.85);
}
