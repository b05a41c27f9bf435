// Trains on MNIST for a few steps, saves the network and loads it into a second one, whose outputs
// are bitwise equal. Needs the data set: `plugrad data mnist` fetches it, PLUGRAD_DATA names it.
#include <plugrad/plugrad.h>

#include <iostream>
using namespace plugrad;

nn::Sequential network() {
  return nn::Sequential(
      nn::Conv2d(1, 8, 5, {.stride = 2}), nn::BatchNorm(8), relu,
      [](const Tensor& x) { return x.max_pool2d(2).flatten(1); }, nn::Linear(8 * 6 * 6, 10));
}

int main() {
  std::optional<data::Split> mnist;
  try {
    mnist = data::mnist({.download = false, .say = [](std::string_view) {}});
  } catch (const Error& error) {
    std::cout << "MNIST is not here, nothing to do: " << error.what() << "\n";
    return 0;
  }
  Tensor::manual_seed(1);
  nn::Sequential net = network();
  optim::Adam opt(nn::parameters(net), {.lr = 5e-3});
  for (auto [x, y] : mnist->train.batches(128, {.shuffle = true, .seed = 1, .steps = 60})) {
    opt.zero_grad();
    sparse_categorical_crossentropy(net(x), y).backward();
    opt.step();
  }
  nn::save(net, "mnist_reload.safetensors");  // weights and the statistics of BatchNorm

  nn::Sequential copy = network();
  nn::load(copy, "mnist_reload.safetensors");
  const nn::TrainingScope evaluation(false);
  const Tensor images = mnist->test.gather({0, 1, 2, 3, 4, 5, 6, 7}).x;
  const bool same = net(images).to_bytes() == copy(images).to_bytes();
  const double before = nn::accuracy(net, mnist->test), after = nn::accuracy(copy, mnist->test);
  std::cout << "test accuracy " << before << ", reloaded " << after << ", same bits: " << same
            << "\n";
  return same && before == after && before > 0.85 ? 0 : 1;
}
