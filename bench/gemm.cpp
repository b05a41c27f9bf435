// sgemm against OpenBLAS, and two threads against one.
#include <fmt/format.h>

#include "bench/harness.h"
#include "bench/peers.h"
#include "bench/suites.h"
#include "plugrad/device.h"
#include "plugrad/functional.h"

namespace plugrad::bench {
namespace {

Tensor random_square(int64_t n, const std::string& device = {}) {
  Tensor tensor = Tensor::rand({n, n}, DType::F32, device);
  tensor.realize();
  return tensor;
}

double gflops(int64_t n, double seconds) { return 2e-9 * static_cast<double>(n * n * n) / seconds; }

// Ours in GFLOP/s.
double measure_size(int64_t n, int threads, const Report& report) {
  ThreadScope scope(threads);
  Tensor a = random_square(n), b = random_square(n);
  std::vector<Round> contenders = {realizing([&] { return matmul(a, b); })};
  std::vector<float> x(static_cast<size_t>(n * n), 0.5f), y = x, z = x;
  const OpenBlas* blas = OpenBlas::find();
  if (blas) {
    blas->set_threads(threads);
    contenders.push_back([&] {
      return time_of([&] { blas->sgemm(static_cast<int>(n), x.data(), y.data(), z.data()); });
    });
  }
  auto timings = measure(contenders);
  Result result{.name = fmt::format("sgemm/{}/threads:{}", n, threads), .value = gflops(n, timings[0].best),
                .unit = "GFLOP/s"};
  if (blas) result.peer = Peer{"OpenBLAS", gflops(n, timings[1].best)};
  report(result);
  return result.value;
}

Round product(int64_t n, const std::string& device) {
  return realizing([a = random_square(n, device), b = random_square(n, device)] { return matmul(a, b); });
}

// A device that does not work on the host's threads, against the one that does.
void measure_beside_cpu(int64_t n, const std::string& device, const Report& report) {
  const auto timings = measure({product(n, device), product(n, "CPU")});
  report({.name = fmt::format("sgemm/{}", n), .value = gflops(n, timings[0].best), .unit = "GFLOP/s",
          .peer = Peer{"plugrad on CPU", gflops(n, timings[1].best)}});
}

}  // namespace

void run_gemm(const Report& report) {
  const std::string device = Device::default_device();
  if (device != "CPU") {
    for (int64_t n : {256, 512}) measure_beside_cpu(n, device, report);
    return;
  }
  for (int64_t n : {256, 512}) {
    double one = measure_size(n, 1, report), two = measure_size(n, 2, report);
    report({.name = fmt::format("sgemm/{}/two threads over one", n), .value = two, .unit = "GFLOP/s",
            .peer = Peer{"plugrad, 1 thread", one}});
  }
}

}  // namespace plugrad::bench
