// Measures in C++ what compare.py measures in Python. Prints one line of JSON: name -> seconds.
#include <plugrad/plugrad.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>
using namespace plugrad;

namespace {

constexpr int kRounds = 15;
constexpr int kSmallRounds = 200, kSmallCalls = 20;  // of single operations
constexpr int kChain = 60;                           // kernels

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The median over the rounds of the mean of `calls` calls.
double seconds_of(int calls, const std::function<void()>& call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    rounds.push_back(spent.count() / calls);
  }
  return median(rounds);
}

/// Of read(a + b) with another `a` each time: the same sum would be computed once.
double seconds_of_sum(const std::function<void(const Tensor&)>& read) {
  const Tensor b = Tensor::from<float>({5, 6, 7, 8}).realize();
  std::vector<double> rounds;
  for (int round = 0; round < kSmallRounds; ++round) {
    std::vector<Tensor> lefts;
    for (int i = 0; i < kSmallCalls; ++i)
      lefts.push_back(Tensor::from<float>({1, 2, 3, 4}).realize());
    const auto start = std::chrono::steady_clock::now();
    for (const Tensor& left : lefts) read(left + b);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    rounds.push_back(spent.count() / kSmallCalls);
  }
  return median(rounds);
}

/// Kernels that cannot be fused.
Tensor chain(Tensor x) {
  for (int i = 0; i < kChain; ++i) x = (x.flip(0) + 1.0).contiguous();
  return x;
}

}  // namespace

int main() {
  std::vector<float> out(4);
  const double value =
      seconds_of_sum([&](const Tensor& sum) { sum.copy_to(std::span<float>(out)); });
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}).realize();
  const auto step = jit(chain);
  for (int i = 0; i < 3; ++i) step(x).realize();
  const double replay = seconds_of(100, [&] { step(x); });
  const double record = seconds_of_sum([](const Tensor&) {});
  std::printf("{\"record\": %.4g, \"value\": %.4g, \"jit\": %.4g}\n", record, value, replay);
}
