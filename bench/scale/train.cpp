// Trains the CNN of `plugrad train mnist`, or a transformer, on one device or several, and prints
// the median time of a step and the most memory that it held on the device.
//   train mnist STEPS BATCH
//   train gpt STEPS BATCH CONTEXT WIDTH HEADS BLOCKS LETTERS [bf16]
// In one process: without a mesh, for a trace. In several: mnist with the batch cut, gpt with the
// parameters cut by nn::tensor_parallel, or with SCALE_DATA=1 with the batch cut; with SCALE_STATE=1
// the optimiser's state is cut, too, and with SCALE_PARAMETERS=1 the batch, the parameters and the
// state.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/clock.h"
#include "plugrad/plugrad.h"
#include "runtime/registry.h"
#include "tools/plugrad/mnist_networks.h"

namespace {

using namespace plugrad;

int64_t number(char** argv, int index) {
  return std::atoll(argv[index]);
}

struct Block {
  Block(int64_t width, int64_t heads)
      : norm1({width}),
        norm2({width}),
        attention(width, heads),
        up(width, 4 * width),
        down(4 * width, width) {}
  nn::LayerNorm norm1, norm2;
  nn::MultiHeadAttention attention;
  nn::Linear up, down;
  PLUGRAD_FIELDS(norm1, norm2, attention, up, down)

  Tensor operator()(const Tensor& x) const {
    const Tensor h = x + attention(norm1(x), {.causal = true});
    return h + down(gelu(up(norm2(h))));
  }
};

struct Gpt {
  Gpt(int64_t context, int64_t width, int64_t heads, int64_t count, int64_t letters)
      : letter(letters, width), place(context, width), norm({width}), out(width, letters) {
    for (int64_t i = 0; i < count; ++i) blocks.emplace_back(width, heads);
  }
  nn::Embedding letter, place;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear out;
  PLUGRAD_FIELDS(letter, place, blocks, norm, out)

  Tensor operator()(const Tensor& x) const {
    Tensor h = letter(x) + place.weight;
    for (const Block& block : blocks) h = block(h);
    return out(norm(h));
  }
};

/// Runs step() and prints the median, and the peak of memory, of the last two thirds.
template <class Step>
void time_steps(int64_t steps, const Step& step) {
  std::vector<double> seconds;
  float loss = 0;
  runtime::Device& device = runtime::Registry::instance().default_device();
  for (int64_t i = 0; i < steps; ++i) {
    if (3 * i < steps || i < 4) device.reset_peak();
    const uint64_t start_ns = monotonic_ns();
    loss = step();
    if (3 * i >= steps) seconds.push_back(static_cast<double>(monotonic_ns() - start_ns) * 1e-9);
  }
  if (seconds.empty() || distributed::rank() != 0) return;
  std::ranges::sort(seconds);
  std::printf("{\"step_ms\": %.6f, \"least_ms\": %.6f, \"loss\": %g, \"peak_bytes\": %llu}\n",
              seconds[seconds.size() / 2] * 1e3, seconds[0] * 1e3, static_cast<double>(loss),
              static_cast<unsigned long long>(device.memory_stats().peak_bytes));
}

template <class Net, class Optimizer, class Put>
void train(Net& net, Optimizer& opt, int64_t steps, const Tensor& x, const Tensor& y,
           const Put& put) {
  auto step = jit([&](const Tensor& images, const Tensor& labels) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(images), labels);
    loss.backward();
    opt.step();
    return loss;
  });
  time_steps(steps, [&] { return step(put(x), put(y)).template item<float>(); });
}

void cut_state(optim::Optimizer& opt, const char* axis) {
  if (distributed::size() > 1 && std::getenv("SCALE_STATE") != nullptr) opt.shard_state(axis);
}

void mnist(char** argv) {
  const int64_t batch = number(argv, 3), ranks = distributed::size();
  tools::MnistCnn net;
  const Mesh mesh({{"data", ranks}});
  if (ranks > 1) nn::data_parallel(net, mesh);
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  cut_state(opt, "data");
  const Tensor x = Tensor::rand({batch / ranks, 1, 28, 28}).realize();
  const Tensor y = Tensor::randint({batch / ranks}, 0, 10).realize();
  train(net, opt, number(argv, 2), x, y, [&](const Tensor& part) {
    if (ranks == 1) return part;
    Shape shape = part.shape();
    shape[0] = batch;
    return from_shards(mesh, {"data"}, shape, {part});
  });
}

void gpt(int argc, char** argv) {
  const int64_t batch = number(argv, 3), context = number(argv, 4), letters = number(argv, 8);
  Gpt net(context, number(argv, 5), number(argv, 6), number(argv, 7), letters);
  if (argc > 9) nn::to(net, DType::BF16);
  const bool is_sharded = distributed::size() > 1,
             cuts_all = std::getenv("SCALE_PARAMETERS") != nullptr,
             cuts_batch = cuts_all || std::getenv("SCALE_DATA") != nullptr;
  const char* axis = cuts_batch ? "data" : "model";
  const Mesh mesh({{axis, distributed::size()}});
  if (is_sharded && cuts_all) nn::shard(net, mesh, {{"*", {axis}}});
  if (is_sharded && cuts_batch && !cuts_all) nn::data_parallel(net, mesh);
  if (is_sharded && !cuts_batch) {
    std::vector<nn::ShardRule> rules = nn::tensor_parallel(net, "model");
    rules.insert(rules.begin(), {"place.weight", {}});  // whole: it is added, not multiplied
    nn::shard(net, mesh, rules);
  }
  optim::AdamW opt(nn::parameters(net), {.lr = 1e-3, .weight_decay = 0.01});
  cut_state(opt, axis);
  const Tensor x = Tensor::randint({batch, context}, 0, letters).realize();
  const Tensor y = Tensor::randint({batch, context}, 0, letters).realize();
  train(net, opt, number(argv, 2), x, y, [&](const Tensor& whole) {
    return !is_sharded ? whole : cuts_batch ? whole.shard(mesh, {axis}) : whole.shard(mesh);
  });
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string network = argc > 1 ? argv[1] : "";
  const bool is_mnist = network == "mnist" && argc == 4;
  const bool is_gpt =
      network == "gpt" && (argc == 9 || (argc == 10 && argv[9] == std::string("bf16")));
  if (!is_mnist && !is_gpt) {
    std::fputs(
        "usage: train mnist STEPS BATCH\n"
        "       train gpt STEPS BATCH CONTEXT WIDTH HEADS BLOCKS LETTERS [bf16]\n",
        stderr);
    return 2;
  }
  plugrad::distributed::init();
  plugrad::Tensor::manual_seed(1);
  is_mnist ? mnist(argv) : gpt(argc, argv);
} catch (const plugrad::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
