#include "bench/roofline/limits.h"

#include <algorithm>

#include "bench/harness.h"
#include "bench/isa.h"
#include "bench/peers/hand_kernels.h"
#include "bench/peers/huge_array.h"
#include "bench/peers/workers.h"

namespace plugrad::bench {

const HandKernels& hand_kernels() {
  static const HandKernels best = [] {
#if defined(__x86_64__)
    const int level = chosen_isa().level;
    if (level >= 4 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
      return avx512::kernels();
    if (level >= 3 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
      return avx2::kernels();
#endif
    return generic::kernels();
  }();
  return best;
}

double peak_flops(int threads) {
  Workers workers(threads);
  double best = 0;
  for (int repeat = 0; repeat < 7; ++repeat) {
    double flops = 0;
    const double seconds = time_of([&] {
      workers.run([&](int t) {
        double mine = 0;
        volatile float keep = hand_kernels().multiply_add(1'000'000, mine);
        (void)keep;
        if (t == 0) flops = mine * threads;
      });
    });
    best = std::max(best, flops / seconds);
  }
  return best;
}

double read_bandwidth(int threads) {
  constexpr size_t kCount = size_t{64} << 20;
  const HugeArray array(kCount);
  std::fill_n(array.data(), kCount, 1.0f);
  Workers workers(threads);
  double best = 0;
  for (int repeat = 0; repeat < 7; ++repeat) {
    const double seconds = time_of([&] {
      workers.split(kCount, 4096, [&](int, size_t begin, size_t end) {
        volatile float keep = hand_kernels().read(array.data(), begin, end);
        (void)keep;
      });
    });
    best = std::max(best, 4.0 * kCount / seconds);
  }
  return best;
}

}  // namespace plugrad::bench
