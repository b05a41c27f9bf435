// Whole training steps against PyTorch.
#include <fmt/format.h>

#include "base/settings.h"
#include "bench/harness.h"
#include "bench/mnist_step.h"
#include "bench/peers.h"
#include "bench/suites.h"

namespace plugrad::bench {

void run_models(const Report& report) {
  constexpr int64_t kBatch = 512;
  MnistStep step(kBatch);
  Timing timing = measure([&] { return time_of([&] { step.run(); }); }, {.warm_up = 2, .least = 5, .seconds = 5.0});
  Result result{.name = "MNIST training step, batch 512", .value = timing.median * 1e3, .unit = "ms"};
  result.higher_is_better = false;
  if (auto seconds = torch_seconds("torch_mnist_step.py", thread_count())) result.peer = Peer{"PyTorch", *seconds * 1e3};
  report(result);
}

}  // namespace plugrad::bench
