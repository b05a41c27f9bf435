// How much of a training step waits for other processes: data parallel training of the MNIST cnn.
//   mpiexec -n 2 pgr_bench_collectives_training [BATCH OF A PROCESS [STEPS]]
// Prints the median step of one process alone with the same batch, that of all processes, and the
// time in which a step waited for collectives.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "engine/session.h"
#include "plugrad/plugrad.h"
#include "tools/plugrad/mnist_networks.h"

namespace plugrad {
namespace {

struct Medians {
  double step_ms, wait_ms, bytes;
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

/// Trains on one batch again and again; on a mesh, each process has its part of a batch.
Medians train(int64_t batch, int steps, const Mesh* mesh) {
  Tensor::manual_seed(1);
  tools::MnistCnn net;
  if (mesh != nullptr) nn::data_parallel(net, *mesh);
  optim::Adam adam(nn::parameters(net), {.lr = 1e-3});
  const auto step = jit([&](const Tensor& x, const Tensor& y) {
    adam.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    adam.step();
    return loss;
  });
  Tensor x = Tensor::rand({batch, 1, 28, 28}).realize();
  Tensor y = Tensor::randint({batch}, 0, 10).realize();
  if (mesh != nullptr) {
    const int64_t whole = batch * distributed::size();
    x = from_shards(*mesh, {"data"}, {whole, 1, 28, 28}, {x});
    y = from_shards(*mesh, {"data"}, {whole}, {y});
  }
  std::vector<double> step_ms, wait_ms, bytes;
  engine::Session& session = engine::Session::current();
  for (int i = 0; i < steps + 5; ++i) {
    const engine::Statistics before = session.statistics();
    const uint64_t begin_ns = monotonic_ns();
    step(x, y).item<float>();
    const uint64_t end_ns = monotonic_ns();
    if (i < 5) continue;  // records and compiles
    const engine::Statistics after = session.statistics();
    step_ms.push_back(static_cast<double>(end_ns - begin_ns) * 1e-6);
    wait_ms.push_back(static_cast<double>(after.collective_wait_ns - before.collective_wait_ns) *
                      1e-6);
    bytes.push_back(static_cast<double>(after.collective_bytes - before.collective_bytes));
  }
  return {median(step_ms), median(wait_ms), median(bytes)};
}

}  // namespace
}  // namespace plugrad

int main(int argc, char** argv) {
  using namespace plugrad;
  distributed::init();
  const int64_t batch = argc > 1 ? std::atoll(argv[1]) : 64;
  const int steps = argc > 2 ? std::atoi(argv[2]) : 60;
  const Mesh mesh({{"data", distributed::size()}});
  const Medians alone = train(batch, steps, nullptr);
  distributed::barrier();
  const Medians all = train(batch, steps, &mesh);
  if (distributed::rank() == 0)
    std::printf(
        "%lld processes, batch %lld each: alone %.2f ms a step, together %.2f ms, of which "
        "%.2f ms (%.1f%%) wait for %.0f bytes\n",
        static_cast<long long>(distributed::size()), static_cast<long long>(batch), alone.step_ms,
        all.step_ms, all.wait_ms, 100 * all.wait_ms / all.step_ms, all.bytes);
  return 0;
}
