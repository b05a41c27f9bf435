#include "bench/peers.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/settings.h"

namespace plugrad::bench {
namespace {

typedef float Lanes __attribute__((vector_size(64)));

// Loads without asking for alignment.
typedef float Unaligned __attribute__((vector_size(64), aligned(4), may_alias));
#define LOAD(at) (*reinterpret_cast<const Unaligned*>(at))

__attribute__((target_clones("avx512f", "avx2", "default"))) float read_range(const float* a, const float* b,
                                                                              const float* c, size_t begin,
                                                                              size_t end) {
  Lanes s0{}, s1{}, s2{}, s3{}, s4{}, s5{};
  for (size_t i = begin; i + 32 <= end; i += 32) {
    s0 += LOAD(a + i), s1 += LOAD(a + i + 16);
    s2 += LOAD(b + i), s3 += LOAD(b + i + 16);
    s4 += LOAD(c + i), s5 += LOAD(c + i + 16);
  }
  Lanes sum = s0 + s1 + s2 + s3 + s4 + s5;
  float total = 0;
  for (int i = 0; i < 16; ++i) total += sum[i];
  return total;
}

__attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default"))) float multiply_add(long rounds) {
  Lanes r[12];
  for (int k = 0; k < 12; ++k) r[k] = Lanes{} + static_cast<float>(k);
  const Lanes a = Lanes{} + 1.000001f, b = Lanes{} + 1e-9f;
  for (long i = 0; i < rounds; ++i)
    for (int k = 0; k < 12; ++k) r[k] = r[k] * a + b;
  Lanes sum{};
  for (int k = 0; k < 12; ++k) sum += r[k];
  return sum[0];
}

void on_threads(int count, const std::function<void(int)>& work) {
  std::vector<std::thread> threads;
  for (int t = 1; t < count; ++t) threads.emplace_back(work, t);
  work(0);
  for (std::thread& thread : threads) thread.join();
}

#undef LOAD

}  // namespace

const OpenBlas* OpenBlas::find() {
  static const OpenBlas* found = []() -> const OpenBlas* {
    void* library = dlopen("libopenblas.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!library) return nullptr;
    static OpenBlas blas;
    blas.set_threads_ = reinterpret_cast<void (*)(int)>(dlsym(library, "openblas_set_num_threads"));
    blas.sgemm_ = reinterpret_cast<Sgemm>(dlsym(library, "cblas_sgemm"));
    return blas.set_threads_ && blas.sgemm_ ? &blas : nullptr;
  }();
  return found;
}

void OpenBlas::sgemm(int n, const float* a, const float* b, float* c) const {
  constexpr int kRowMajor = 101, kNoTrans = 111;
  sgemm_(kRowMajor, kNoTrans, kNoTrans, n, n, n, 1.0f, a, n, b, n, 0.0f, c, n);
}

double read_loop(const float* a, const float* b, const float* c, size_t count, int threads) {
  std::vector<float> sums(static_cast<size_t>(threads));
  uint64_t start = monotonic_ns();
  on_threads(threads, [&](int t) {
    size_t part = count / static_cast<size_t>(threads), begin = part * static_cast<size_t>(t);
    sums[static_cast<size_t>(t)] = read_range(a, b, c, begin, begin + part);
  });
  double seconds = static_cast<double>(monotonic_ns() - start) * 1e-9;
  volatile float keep = sums[0];
  (void)keep;
  return seconds;
}

double peak_flops(int threads) {
  constexpr long kRounds = 4'000'000;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    uint64_t start = monotonic_ns();
    on_threads(threads, [&](int) {
      volatile float keep = multiply_add(kRounds);
      (void)keep;
    });
    double seconds = static_cast<double>(monotonic_ns() - start) * 1e-9;
    best = std::max(best, 12.0 * 16 * 2 * kRounds * threads / seconds);
  }
  return best;
}

std::optional<double> torch_seconds(const std::string& program, int threads) {
  std::string python = environment_variable("PLUGRAD_PEER_PYTHON").value_or("python3");
  std::string script = std::string(PLUGRAD_BENCH_PEERS) + "/" + program;
  std::string command = fmt::format("'{}' '{}' {} 2>/dev/null", python, script, threads);
  FILE* pipe = popen(command.c_str(), "r");
  if (!pipe) return std::nullopt;
  double seconds = 0;
  bool read = std::fscanf(pipe, "%lf", &seconds) == 1;
  bool succeeded = pclose(pipe) == 0;
  if (!read || !succeeded || seconds <= 0) return std::nullopt;
  return seconds;
}

}  // namespace plugrad::bench
