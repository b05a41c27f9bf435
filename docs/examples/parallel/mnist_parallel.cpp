// Trains on MNIST over several devices: each has the whole network and takes a part of every batch.
//   pgr_example_mnist_parallel               one process, two positions on the default device
//   pgr_example_mnist_parallel 1             one position, for comparison
//   mpirun -n 2 pgr_example_mnist_parallel   two processes, one position each
// All three print the same losses, up to the order of sums; with PLUGRAD_DETERMINISTIC=1 all digits
// are the same. Needs the data set: `plugrad data mnist` fetches it, PLUGRAD_DATA names it.
#include <plugrad/plugrad.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <optional>
using namespace plugrad;

constexpr int64_t kBatch = 128, kSteps = 40;

nn::Sequential network() {
  return nn::Sequential(
      nn::Conv2d(1, 8, 5, {.stride = 2}), relu,
      [](const Tensor& x) { return x.max_pool2d(2).flatten(1); }, nn::Linear(8 * 6 * 6, 10));
}

int main(int argc, char** argv) {
  distributed::init();  // finds the processes of mpirun or srun; without a launcher there is one
  const bool many = distributed::size() > 1;
  std::optional<data::Split> mnist;
  try {
    mnist = data::mnist({.download = false, .say = [](std::string_view) {}});
  } catch (const Error& error) {
    std::cout << "MNIST is not here, nothing to do: " << error.what() << "\n";
    return 0;
  }

  const int64_t positions = many ? distributed::size() : argc > 1 ? std::atoll(argv[1]) : 2;
  std::vector<std::string> devices;  // of many processes each has its default device
  if (!many) devices.assign(static_cast<size_t>(positions), Device::default_device());
  const Mesh mesh({{"data", positions}}, devices);

  Tensor::manual_seed(1);  // the same initial weights in all processes
  nn::Sequential net = network();
  nn::data_parallel(net, mesh);
  optim::Adam opt(nn::parameters(net), {.lr = 5e-3});
  auto step = jit([&](const Tensor& x, const Tensor& y) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    return loss;
  });
  // Each process loads its part of the batch alone; one process cuts the batch itself.
  const auto on_mesh = [&](const Tensor& part, Shape shape) {
    shape[0] = kBatch;
    return many ? from_shards(mesh, {"data"}, shape, {part}) : part.shard(mesh, {"data"});
  };
  int64_t at = 0;
  for (auto [x, y] : mnist->train.batches(kBatch, {.shuffle = true,
                                                   .seed = 1,
                                                   .steps = kSteps,
                                                   .rank = distributed::rank(),
                                                   .ranks = distributed::size()})) {
    const float loss = step(on_mesh(x, x.shape()), on_mesh(y, y.shape())).item<float>();
    if (distributed::rank() == 0)
      std::cout << "step " << at << ": loss " << std::setprecision(7) << loss << std::endl;
    ++at;
  }

  nn::to(net, Device::default_device());  // from here on, each process works alone
  const double accuracy = nn::accuracy(net, mnist->test);
  if (distributed::rank() == 0) std::cout << "test accuracy " << accuracy << "\n";
  return accuracy > 0.8 ? 0 : 1;
}
