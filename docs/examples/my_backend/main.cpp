// Uses a user's device: my_backend PLUGIN.so [ITERATIONS]. Adds two vectors on the device, then
// multiplies matrices on the device and on plugrad's own devices, side by side.
#include <plugrad/plugrad.h>

#include <chrono>
#include <cstdlib>
#include <iomanip>
#include <iostream>
using namespace plugrad;

namespace {

constexpr int64_t kSize = 256;

// The product of the same values on every device, copied to the CPU.
Tensor product(const std::string& device) {
  Tensor::manual_seed(1);
  const Tensor a = Tensor::rand({kSize, kSize}, DType::F32, device);
  const Tensor b = Tensor::rand({kSize, kSize}, DType::F32, device);
  return matmul(a, b).to("CPU").realize();
}

// A chain of products, each dependent on the one before; reading the last waits for all.
double gflops(const std::string& device, int iterations) {
  const Tensor a = (Tensor::rand({kSize, kSize}, DType::F32, device) / (0.5 * kSize)).realize();
  Tensor x = matmul(a, Tensor::rand({kSize, kSize}, DType::F32, device).realize());  // compiles
  x.to_vector<float>();
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < iterations; ++i) x = matmul(a, x).realize();
  x.to_vector<float>();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return 2e-9 * kSize * kSize * kSize * iterations / time.count();
}

bool is_there(const std::string& device) {
  try {
    Tensor::zeros({1}, DType::F32, device).to_vector<float>();
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: my_backend libplugrad_plugin_my.so [ITERATIONS]\n";
    return 2;
  }
  const std::string MY = add_plugin(argv[1]);
  for (int sum : (Tensor({1, 2, 3}, MY) + Tensor({4, 5, 6}, MY)).to_vector<int>())
    std::cout << sum << " ";
  std::cout << "on " << MY << "\n";

  const int iterations = argc > 2 ? std::atoi(argv[2]) : 50;
  const Tensor expected = product("CPU");
  for (const std::string device : {MY, std::string("CPU"), std::string("CUDA")}) {
    if (!is_there(device)) continue;
    const double off = (product(device) - expected).abs().max().item<double>();
    std::cout << std::left << std::setw(6) << device << std::right << std::fixed
              << std::setprecision(2) << std::setw(10) << gflops(device, iterations)
              << " GFLOP/s, off by " << std::scientific << off << "\n";
    if (!(off < 1e-4)) return 1;  // 256 products of numbers below 1, added in some order
  }
}
