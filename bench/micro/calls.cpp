// Measures the overhead of a user's call: recorded, replayed, with variable sizes; and of a single
// launch.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "bench/harness.h"
#include "bench/micro/micro.h"
#include "engine/session.h"
#include "plugrad/functional.h"
#include "plugrad/jit.h"

namespace plugrad::bench {
namespace {

constexpr int kTinyKernels = 100;
constexpr int kCallsTimed = 250;  // per iteration
constexpr int64_t kMostRows = 4096, kRowSize = 256;
constexpr std::array<int64_t, 3> kVariableSizes = {1, kMostRows / 4, kMostRows};

using Body = std::function<void(benchmark::State&)>;

// The median over the calls of an iteration; a mean would include disturbances by other processes.
double median_seconds(const std::function<double()>& call) {
  std::array<double, kCallsTimed> seconds;
  for (double& s : seconds) s = call();
  std::sort(seconds.begin(), seconds.end());
  return seconds[kCallsTimed / 2];
}

Body call_to_value() {
  const Tensor a = Tensor::from<float>({1, 2, 3, 4}), b = Tensor::from<float>({5, 6, 7, 8});
  Tensor::realize(std::vector{a, b});
  return [a, b](benchmark::State& state) {
    std::vector<float> out(4);
    for (auto _ : state)
      state.SetIterationTime(median_seconds([&] {
        const double seconds = time_of([&] { (a + b).copy_to(std::span<float>(out)); });
        engine::Session::current().collect();
        return seconds;
      }));
  };
}

// A chain of kernels of four floats each, which cannot be fused.
Tensor tiny_chain(Tensor x) {
  for (int i = 0; i < kTinyKernels; ++i) x = (x.flip(0) + 1.0).contiguous();
  return x;
}

Body replay_of_chain() {
  engine::Session& session = engine::Session::current();
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}).realize();
  const auto chain = jit(tiny_chain);
  for (int i = 0; i < 3; ++i) chain(x);
  const uint64_t before = session.statistics().kernels_launched;
  chain(x);
  const auto kernels = static_cast<double>(session.statistics().kernels_launched - before);
  return [x, chain, kernels](benchmark::State& state) {
    for (auto _ : state)
      state.SetIterationTime(median_seconds([&] { return time_of([&] { chain(x); }); }) / kernels);
  };
}

// One recording over a variable number of rows: a product, softmax over columns and over rows,
// sums.
Body call_of_size(int64_t size) {
  const Variable rows("rows", 1, kMostRows);
  const Tensor w = Tensor::rand({kRowSize, kRowSize}).realize();
  const auto step = jit([w](const Tensor& x) {
    const Tensor h = x.matmul(w).softmax(1);
    return h.sum(0) + x.softmax(0).max(0);
  });
  const Tensor x = rows.fit(Tensor::rand({size, kRowSize}), 0);
  for (int i = 0; i < 3; ++i) step(x).to_vector<float>();
  return [step, x](benchmark::State& state) {
    for (auto _ : state) step(x).to_vector<float>();
  };
}

}  // namespace

std::vector<Micro> call_micros() {
  std::vector<Micro> micros = {
      {.name = "a + b of 4 floats, call to value",
       .unit = "us",
       .prepare = call_to_value,
       .is_timed_by_hand = true},
      {.name = fmt::format("jitted replay a kernel ({} tiny kernels)", kTinyKernels),
       .unit = "us",
       .prepare = replay_of_chain,
       .is_timed_by_hand = true}};
  for (const int64_t size : kVariableSizes)
    micros.push_back({.name = fmt::format("variable size/bound:{}/size:{}", kMostRows, size),
                      .unit = "ms",
                      .prepare = [size] { return call_of_size(size); },
                      .iterations = 3});
  return micros;
}

}  // namespace plugrad::bench
