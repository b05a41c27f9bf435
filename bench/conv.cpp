// A 3x3 convolution against PyTorch, or against what PyTorch reaches of a machine's peak.
#include "bench/harness.h"
#include "bench/peers.h"
#include "bench/suites.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

// Measured once where PyTorch is installed: it does 162 GFLOP/s of a peak of 206 with two threads.
constexpr double kTorchOfPeak = 162.0 / 206.0;
constexpr double kFlops = 2.0 * 32 * 64 * 26 * 26 * 32 * 9;

Peer find_peer() {
  if (auto seconds = torch_seconds("torch_conv.py", 2)) return {"PyTorch", kFlops / *seconds * 1e-9};
  return {"162/206 of the peak", peak_flops(2) * kTorchOfPeak * 1e-9};
}

}  // namespace

void run_conv(const Report& report) {
  ThreadScope scope(2);
  Tensor x = Tensor::rand({32, 32, 28, 28}), w = Tensor::rand({64, 32, 3, 3});
  Tensor::realize(std::vector{x, w});
  Timing timing = measure(realizing([&] { return conv2d(x, w); }));
  report({.name = "conv2d/32x32x28x28/64x3x3/threads:2", .value = kFlops / timing.best * 1e-9, .unit = "GFLOP/s",
          .peer = find_peer()});
}

}  // namespace plugrad::bench
