// OPENCL beside the CPU in one process: two versions of Clang in either load order, equal values,
// and tensors copied between the two.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "plugrad/functional.h"
#include "plugrad/tensor.h"
#include "runtime/registry.h"

namespace plugrad {
namespace {

class Opencl : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      runtime::Registry::instance().find_device("OPENCL");
    } catch (const std::exception& failure) {
      GTEST_SKIP() << "no OPENCL device here: " << failure.what();
    }
  }
};

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> spread(-1, 1);
  std::vector<float> values(count);
  for (float& value : values) value = spread(engine);
  return values;
}

// The kernel holds a number of this run alone, so that no cache has it and the compiler runs.
void expect_scaled(const char* device, float factor) {
  const std::vector<float> values = random_values(1000, 1);
  const std::vector<float> scaled = (Tensor::from(values, device) * factor).to_vector<float>();
  for (size_t i = 0; i < values.size(); ++i)
    ASSERT_EQ(scaled[i], values[i] * factor) << device << " at " << i;
}

std::set<std::string> loaded_libraries(const std::string& part) {
  std::set<std::string> found;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash != line.npos && line.find(part, slash) != line.npos) found.insert(line.substr(slash));
  }
  return found;
}

void expect_both(const char* first, const char* second) {
  const float factor = 1 + static_cast<float>(std::random_device()() % 1'000'000) / 1'000'000;
  expect_scaled(first, factor);
  expect_scaled(second, factor);
  if (loaded_libraries("libpocl").empty())
    return;  // another driver's compiler has no separate LLVM
  EXPECT_FALSE(loaded_libraries("libLLVM").empty()) << "the driver's compiler did not run";
  EXPECT_FALSE(loaded_libraries("libplugrad_clang").empty()) << "our compiler did not run";
}

// Each compiler is loaded by the first kernel of its device; CTest runs either order by itself.
TEST_F(Opencl, CpuThenOpencl) {
  expect_both("CPU", "OPENCL");
}
TEST_F(Opencl, OpenclThenCpu) {
  expect_both("OPENCL", "CPU");
}

// |error| <= n * u * sum |a * b|, whatever the order of the additions.
TEST_F(Opencl, ProductOf512_IsWithinTheBound) {
  constexpr size_t n = 512;
  const std::vector<float> a = random_values(n * n, 3), b = random_values(n * n, 4);
  const Shape square{static_cast<int64_t>(n), static_cast<int64_t>(n)};
  const std::vector<float> c =
      matmul(Tensor::from(a, square, "OPENCL"), Tensor::from(b, square, "OPENCL"))
          .to_vector<float>();
  for (size_t i = 0; i < n; ++i)
    for (size_t j = 0; j < n; ++j) {
      double exact = 0, size = 0;
      for (size_t k = 0; k < n; ++k) {
        const double term = double{a[i * n + k]} * double{b[k * n + j]};
        exact += term;
        size += std::fabs(term);
      }
      ASSERT_LE(std::fabs(c[i * n + j] - exact), n * 0x1p-24 * size) << i << ", " << j;
    }
}

TEST_F(Opencl, TensorsMoveToTheCpuAndBack) {
  const std::vector<float> values = random_values(100'003, 5);
  const Tensor there = Tensor::from(values, "CPU").to("OPENCL") * 2.0f;
  const std::vector<float> back = (there.to("CPU") * 0.5f).to("OPENCL").to_vector<float>();
  EXPECT_EQ(back, values);
}

}  // namespace
}  // namespace plugrad
