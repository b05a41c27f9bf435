// The code blocks of docs/sharding.md.
#include <plugrad/plugrad.h>

#include <filesystem>
#include <iostream>
using namespace plugrad;

data::Dataset samples() {
  return data::Dataset(std::vector<uint8_t>(1024 * 784, 3), std::vector<uint8_t>(1024, 1), 28, 28);
}

nn::Sequential classifier() {
  return nn::Sequential([](const Tensor& x) { return x.flatten(1); }, nn::Linear(784, 8), relu,
                        nn::Linear(8, 10));
}

struct Block {
  nn::Embedding place{4, 8};
  nn::Linear up{8, 16}, down{16, 8};
  PLUGRAD_FIELDS(place, up, down)
  Tensor operator()(const Tensor& x) const { return down(relu(up(x + place.weight))); }
};

void train_on_two(const data::Dataset& train) {
  nn::Sequential net = classifier();
  const Mesh mesh({{"data", 2}}, {"CPU", "CPU"});  // two positions, on devices by name
  nn::data_parallel(net, mesh);                    // both have all parameters
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  for (auto [x, y] : train.batches(512, {.shuffle = true})) {
    opt.zero_grad();
    const Tensor made = net(x.shard(mesh, {"data"}));  // each device takes half of the batch
    Tensor loss = sparse_categorical_crossentropy(made, y.shard(mesh, {"data"}));
    loss.backward();
    opt.step();  // with the gradients of both
  }
  nn::to(net, "CPU");  // back to one device, e.g. to save it
  std::cout << "one device: " << !net(train.gather({0}).x).is_sharded() << "\n";
}

// Each process loads its part of a batch; this program has one process, and one position.
void train_by_ranks(const data::Dataset& train) {
  const Mesh mesh({{"data", distributed::size()}});
  nn::Sequential net = classifier();
  nn::data_parallel(net, mesh);
  float total = 0;
  const auto step = [&](const Tensor& x, const Tensor& y) {
    total += sparse_categorical_crossentropy(net(x), y).item<float>();
  };
  data::BatchOptions options{.shuffle = true};
  options.rank = distributed::rank();
  options.ranks = distributed::size();
  for (auto [x, y] : train.batches(512, options)) {
    const Tensor images = from_shards(mesh, {"data"}, {512, 1, 28, 28}, {x});
    step(images, from_shards(mesh, {"data"}, {512}, {y}));
  }
  std::cout << "two batches: " << (total > 0) << "\n";
}

void cut_modules(const Mesh& mesh) {
  const Tensor x = Tensor::rand({2, 4, 8}).shard(mesh);
  {
    nn::Sequential net(Block{}, Block{});
    nn::shard(net, mesh, {{"*.up.weight", {"model"}}, {"*.down.weight", {"", "model"}}});
    std::cout << nn::state_dict(net)[1].second.shard_spec().to_string() << "\n";
  }
  {
    Block net;
    nn::shard(net, mesh, {{"*", {"data"}}});
    std::cout << nn::state_dict(net)[0].second.shard_spec().to_string() << "\n";
  }
  {
    Block net;
    auto rules = nn::tensor_parallel(net, "model");
    rules.insert(rules.begin(), {"place.weight", {}});  // on every device
    nn::shard(net, mesh, rules);
    optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
    opt.shard_state("data");
    net(x).sum().backward();
    opt.step();
    std::cout << nn::state_dict(opt)[0].second.shard_spec().to_string() << "\n";
  }
}

struct Training {
  nn::Sequential& net;
  optim::Adam& opt;
  PLUGRAD_FIELDS(net, opt)
};

void resume() {
  nn::Sequential net = classifier();
  nn::data_parallel(net, Mesh({{"data", 2}}, {"CPU", "CPU"}));
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  nn::save_sharded(Training{net, opt}, "checkpoint");
  nn::load_sharded(Training{net, opt}, "checkpoint");  // on another mesh, by other processes
  std::filesystem::remove_all("checkpoint");
}

void run_pipeline(const Tensor& x, const Tensor& y) {
  nn::Linear embed(784, 8), head(8, 10);
  const auto block1 = [](const Tensor& h) { return h.relu(); }, block2 = block1;
  nn::Pipeline net(nn::Sequential(embed, block1, block2, head), {{0, "CPU"}, {2, "CPU"}}, 8);
  optim::Adam opt(nn::parameters(net));
  Tensor loss = net.loss(x, y, [](const Tensor& made, const Tensor& wanted) {
    return sparse_categorical_crossentropy(made, wanted);
  });
  loss.backward();
  opt.step();
  const Tensor whole =
      sparse_categorical_crossentropy(nn::Sequential(embed, block1, block2, head)(x), y);
  std::cout << "the loss of the batch: " << loss.allclose(whole) << "\n";
}

int main() {
  distributed::init();
  const data::Dataset train = samples();
  train_on_two(train);
  train_by_ranks(train);
  cut_modules(Mesh({{"data", 2}, {"model", 2}}, {"CPU", "CPU", "CPU", "CPU"}));
  resume();
  const auto [x, y] = train.gather({0, 1, 2, 3, 4, 5, 6, 7});
  run_pipeline(x.flatten(1), y);
}
