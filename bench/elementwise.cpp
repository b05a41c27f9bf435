// Streaming speed: sum(relu(a * b + c)) against a loop that only reads.
#include <fmt/format.h>

#include "bench/harness.h"
#include "bench/peers.h"
#include "bench/suites.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

constexpr int64_t kCount = 16 << 20;
double gigabytes(double seconds) { return 3.0 * 4 * static_cast<double>(kCount) / seconds * 1e-9; }

}  // namespace

void run_elementwise(const Report& report) {
  Tensor a = Tensor::rand({kCount}), b = Tensor::rand({kCount}), c = Tensor::rand({kCount});
  Tensor::realize(std::vector{a, b, c});
  std::vector<float> x(kCount, 0.5f), y = x, z = x;
  for (int threads : {1, 2}) {
    ThreadScope scope(threads);
    auto timings = measure({realizing([&] { return (a * b + c).relu().sum(); }),
                            [&] { return read_loop(x.data(), y.data(), z.data(), kCount, threads); }},
                           {.seconds = 2.0});
    report({.name = fmt::format("sum(relu(a*b+c))/16M/threads:{}", threads), .value = gigabytes(timings[0].median),
            .unit = "GB/s", .peer = Peer{"C read loop", gigabytes(timings[1].median)}});
  }
}

}  // namespace plugrad::bench
