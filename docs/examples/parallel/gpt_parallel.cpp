// Trains the transformer of gpt.cpp on two devices, in two ways.
//   pgr_example_gpt_parallel tensor              each device has half of every matrix
//   mpirun -n 2 pgr_example_gpt_parallel tensor  the same in two processes
//   pgr_example_gpt_parallel pipeline [DEVICE]   the second device has half of the blocks
//   mpirun -n 2 pgr_example_gpt_parallel pipeline  the second process has them
//   pgr_example_gpt_parallel one                 one device, for comparison
// All print the same losses, up to the order of sums.
#include <cstdlib>
#include <functional>
#include <iomanip>
#include <iostream>

#include "gpt.h"
using namespace gpt;

constexpr int64_t kSteps = 12;

// The letters and their places; the blocks follow, and then the head.
struct Input {
  explicit Input(int64_t letters) : letter(letters, kWidth) {}
  nn::Embedding letter, place{kContext, kWidth};
  PLUGRAD_FIELDS(letter, place)
  Tensor operator()(const Tensor& x) const { return letter(x) + place.weight; }
};

struct Head {
  explicit Head(int64_t letters) : out(kWidth, letters) {}
  nn::LayerNorm norm{{kWidth}};
  nn::Linear out;
  PLUGRAD_FIELDS(norm, out)
  Tensor operator()(const Tensor& x) const { return out(norm(x)); }
};

nn::Sequential network(int64_t letters) {
  return nn::Sequential(Input(letters), Block(), Block(), Head(letters));
}

// Trains; `loss_of` returns the loss of letters x and targets y.
void train(const std::vector<Tensor>& parameters, Pieces& pieces,
           const std::function<Tensor(const Tensor& x, const Tensor& y)>& loss_of) {
  optim::AdamW opt(parameters, {.lr = 3e-3, .weight_decay = 0.01});
  for (int64_t i = 0; i < kSteps; ++i) {
    const auto [x, y] = pieces.next();
    opt.zero_grad();
    const Tensor loss = loss_of(x, y);
    loss.backward();
    optim::clip_grad_norm(opt.parameters(), 1.0);
    opt.step();
    const float value = loss.item<float>();
    if (distributed::rank() == 0)
      std::cout << "step " << i << ": loss " << std::setprecision(7) << value << std::endl;
  }
}

// The rules cut attention by heads and the pairs of Linear by the values between them.
void train_tensor_parallel(nn::Sequential& net, Pieces& pieces) {
  std::vector<std::string> devices;
  if (distributed::size() == 1) devices.assign(2, Device::default_device());
  const Mesh mesh({{"model", 2}}, devices);
  std::vector<nn::ShardRule> rules = nn::tensor_parallel(net, "model");
  rules.insert(rules.begin(), {"0.place.weight", {}});  // whole: it is added, not multiplied
  nn::shard(net, mesh, rules);
  train(nn::parameters(net), pieces, [&](const Tensor& x, const Tensor& y) {
    return sparse_categorical_crossentropy(net(x.shard(mesh)), y.shard(mesh));
  });
}

// Layers 0 and 1 on one device or process, 2 and 3 on another; each batch in four parts.
void train_pipeline(nn::Sequential& net, Pieces& pieces, std::string second) {
  std::string first = Device::default_device();
  if (distributed::size() > 1) {
    first = Mesh({{"data", 1}}, {}, {0}).device();
    second = Mesh({{"data", 1}}, {}, {1}).device();
  }
  nn::Pipeline pipeline(std::move(net), {{0, first}, {2, second}}, 4);
  train(nn::parameters(pipeline), pieces, [&](const Tensor& x, const Tensor& y) {
    return pipeline.loss(x, y, [](const Tensor& made, const Tensor& wanted) {
      return sparse_categorical_crossentropy(made, wanted);
    });
  });
}

int main(int argc, char** argv) {
  distributed::init();  // finds the processes of mpirun or srun; without a launcher there is one
  const std::string way = argc > 1 ? argv[1] : "tensor";
  Tensor::manual_seed(1);
  Pieces pieces;
  nn::Sequential net = network(pieces.letters());
  if (way == "tensor")
    train_tensor_parallel(net, pieces);
  else if (way == "pipeline")
    train_pipeline(net, pieces, argc > 2 ? argv[2] : Device::default_device());
  else
    train(nn::parameters(net), pieces, [&](const Tensor& x, const Tensor& y) {
      return sparse_categorical_crossentropy(net(x), y);
    });
}
