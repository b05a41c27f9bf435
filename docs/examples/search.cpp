// Searches kernel schedules of a matrix product and of an MNIST training step, and prints times
// before and after. Runs for one to two minutes; arguments: size of the matrices, seconds per
// kernel, 0 to leave MNIST out.
#include <plugrad/plugrad.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <vector>
using namespace plugrad;

namespace {

struct Net {
  nn::Conv2d c1{1, 32, 5}, c2{32, 32, 5}, c3{32, 64, 3}, c4{64, 64, 3};
  nn::BatchNorm n1{32}, n2{64};
  nn::Linear out{576, 10};
  PLUGRAD_FIELDS(c1, c2, c3, c4, n1, n2, out)

  Tensor operator()(const Tensor& x) {
    Tensor h = n1(relu(c2(relu(c1(x))))).max_pool2d(2);
    return out(n2(relu(c4(relu(c3(h))))).max_pool2d(2).flatten(1));
  }
};

/// Median time of repeated calls f(i) in milliseconds, without the first call.
template <class F>
double milliseconds(int calls, const F& f) {
  std::vector<double> times;
  for (int i = 0; i <= calls; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f(i);
    times.push_back(
        std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
            .count());
  }
  std::sort(times.begin() + 1, times.end());
  return times[1 + static_cast<size_t>(calls) / 2];
}

constexpr int kCalls = 15;

/// A realised tensor keeps its value, so each call needs its own left operand.
void product(int beam, double seconds, const std::vector<Tensor>& left, const Tensor& b) {
  const SearchScope search(beam, seconds);
  const double ms = milliseconds(kCalls, [&](int i) {
    const Tensor c = matmul(left[static_cast<size_t>(i)], b).realize();
    c[{0, 0}].item<float>();
  });
  const int64_t n = b.shape()[0];
  std::string list;
  for (const Kernel& kernel : matmul(left[0], b).schedule()) list = kernel.optimisations();
  const auto size = static_cast<double>(n);
  std::printf("matmul %lld, BEAM=%d: %.3f ms, %.0f GFLOP/s, %s\n", static_cast<long long>(n), beam,
              ms, 2 * size * size * size / ms * 1e-6, list.c_str());
}

double step(int beam, double seconds, const Tensor& x, const Tensor& y) {
  const SearchScope search(beam, seconds);
  Net net;
  optim::Adam opt(nn::parameters(net), {.lr = 1e-3});
  return milliseconds(7, [&](int) {
    opt.zero_grad();
    Tensor loss = sparse_categorical_crossentropy(net(x), y);
    loss.backward();
    opt.step();
    loss.item<float>();
  });
}

}  // namespace

int main(int argc, char** argv) {
  const int64_t n = argc > 1 ? std::atoll(argv[1]) : 1024;
  const double seconds = argc > 2 ? std::atof(argv[2]) : 15;
  const bool with_mnist = argc <= 3 || std::atoi(argv[3]) != 0;
  // An own database makes BEAM=0 use the heuristic, whatever an earlier search stored.
  std::filesystem::remove("search-example.tsv");
  setenv("PLUGRAD_SEARCH_DB", "search-example.tsv", 1);

  for (int beam : {0, 4}) {
    std::vector<Tensor> left;
    for (int i = 0; i <= kCalls; ++i) left.push_back(Tensor::randn({n, n}).realize());
    product(beam, seconds, left, Tensor::randn({n, n}).realize());
  }
  if (!with_mnist) return 0;
  const Tensor x = Tensor::randn({512, 1, 28, 28}).realize(),
               y = Tensor::randint({512}, 0, 10).realize();
  const double before = step(0, 2, x, y), after = step(2, 2, x, y);
  std::printf("MNIST step, BEAM=0: %.1f ms, BEAM=2: %.1f ms\n", before, after);
}
