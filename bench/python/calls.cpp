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
constexpr int kCalls = 300;  // a round
constexpr int kChain = 60;   // kernels

/// The median over the rounds of the mean of `calls` calls.
double seconds_of(int calls, const std::function<void()>& call) {
  std::vector<double> rounds;
  for (int round = 0; round < kRounds; ++round) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < calls; ++i) call();
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    rounds.push_back(spent.count() / calls);
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

/// An operand for each call: the same sum of the same tensors would be computed once.
std::vector<Tensor> operands() {
  std::vector<Tensor> made;
  for (int i = 0; i < kRounds * kCalls; ++i)
    made.push_back(Tensor::from<float>({1, 2, 3, 4}).realize());
  return made;
}

/// Kernels that cannot be fused.
Tensor chain(Tensor x) {
  for (int i = 0; i < kChain; ++i) x = (x.flip(0) + 1.0).contiguous();
  return x;
}

}  // namespace

int main() {
  const Tensor b = Tensor::from<float>({5, 6, 7, 8}).realize();
  std::vector<float> out(4);
  std::vector<Tensor> lefts = operands();
  auto left = lefts.begin();
  const double value = seconds_of(kCalls, [&] { (*left++ + b).copy_to(std::span<float>(out)); });
  const auto step = jit(chain);
  for (int i = 0; i < 3; ++i) step(b).realize();
  const double replay = seconds_of(100, [&] { step(b); });
  lefts = operands();
  left = lefts.begin();
  const double record = seconds_of(kCalls, [&] { const Tensor c = *left++ + b; });
  std::printf("{\"record\": %.4g, \"value\": %.4g, \"jit\": %.4g}\n", record, value, replay);
}
