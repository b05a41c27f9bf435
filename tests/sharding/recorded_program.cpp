// A sharded program whose trace trace_test.py and the viewer's test read: two positions of one
// process, or one position in each of several processes. With the argument `train` a step of an
// optimiser whose state is cut; with `move` a value that goes from rank 0 to rank 1, then to all;
// with `differ` each rank reads another result, with `rates` each has another learning rate.
#include <cstdio>
#include <string_view>

#include "plugrad/plugrad.h"

using namespace plugrad;

struct Net {
  nn::Linear up{4, 6}, down{6, 2};
  PLUGRAD_FIELDS(up, down)
};

void train(const Mesh& mesh, double lr) {
  Net net;
  nn::data_parallel(net, mesh);
  optim::AdamW opt(nn::parameters(net), {.lr = lr});
  opt.shard_state("data");
  const Tensor x = Tensor::ones({8, 4}).contiguous().to("CPU").shard(mesh, {"data"}).realize();
  net.down(net.up(x).relu()).square().mean().backward();
  opt.step();
}

// An error in all ranks.
void read_others(const Mesh& mesh) {
  const Tensor x = Tensor::ones({8, 6}).contiguous().to("CPU").shard(mesh, {"data"});
  const std::vector<Tensor> sums = {(x * 2).sum(), (x * 3).sum()};
  std::printf("read %g\n", sums[static_cast<size_t>(distributed::rank() % 2)].item<double>());
}

void move(const Mesh& all) {
  const Mesh first({{"data", 1}}, {}, {0}), second({{"data", 1}}, {}, {1});
  const Tensor x = Tensor::ones({8, 4}).contiguous().to("CPU").shard(first, {"data"});
  const Tensor y = ((x * 2).to(second.device()) + 1).to(all.device()) * 3;
  const float sum = y.sum().item<float>();
  if (distributed::rank() == 0) std::printf("%g\n", static_cast<double>(sum));
}

int main(int argc, char** argv) {
  distributed::init();
  const int64_t ranks = distributed::size();
  const Mesh mesh = ranks > 1 ? Mesh({{"data", ranks}}) : Mesh({{"data", 2}}, {"CPU", "CPU"});
  if (argc > 1) {
    const std::string_view part = argv[1];
    if (part == "train" || part == "rates")
      train(mesh, part == "rates" ? 0.001 * static_cast<double>(1 + distributed::rank()) : 0.001);
    else
      (part == "move" ? move : read_others)(mesh);
    return 0;
  }
  std::vector<float> numbers(48);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i);
  const Tensor x = Tensor::from(numbers, {8, 6}, "CPU").shard(mesh, {"data"}).realize();
  const Tensor sums = x.sum(0), squares = x.square().sum();
  const std::string text = describe_sharding(squares.sqrt());  // in all ranks
  if (distributed::rank() == 0) std::fputs(text.c_str(), stdout);
  const std::vector<Tensor> both = {sums, squares};
  Tensor::realize(both);
  const Tensor twice = (x * 2).unshard();
  const float last = twice.to_vector<float>()[47], sum = sums.to_vector<float>()[5];
  if (distributed::rank() == 0)
    std::printf("%g %g %g\n", static_cast<double>(sum), squares.item<double>(),
                static_cast<double>(last));
}
