// Through core, on the double of libcuda: large products use tensor cores and are correct.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <plugrad/plugrad.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace plugrad {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Sizes {
  int64_t m, n, k;
};

std::vector<float> small_integers(int64_t count, uint32_t state) {
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(static_cast<int>(state >> 29) - 4);
  }
  return out;
}

// Exact, because sums of small integers are.
void expect_product(const Sizes& s, DType dtype, const char* with = "tensor_core(") {
  const std::vector<float> a = small_integers(s.m * s.k, 1), b = small_integers(s.k * s.n, 2);
  const Tensor left = Tensor::from(a, {s.m, s.k}).cast(dtype).contiguous();
  const Tensor right = Tensor::from(b, {s.k, s.n}).cast(dtype).contiguous();
  left.realize();
  right.realize();
  const Tensor product = left.matmul(right).relu().cast(DType::F32);
  EXPECT_THAT(product.schedule().back().optimisations(), HasSubstr("tensor_core("));
  EXPECT_THAT(product.schedule().back().optimisations(), HasSubstr(with));
  const std::vector<float> got = product.to_vector<float>();
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      float sum = 0;
      for (int64_t l = 0; l < s.k; ++l)
        sum += a[static_cast<size_t>(i * s.k + l)] * b[static_cast<size_t>(l * s.n + j)];
      ASSERT_EQ(got[static_cast<size_t>(i * s.n + j)], std::max(sum, 0.0f)) << i << ", " << j;
    }
}

TEST(CudaTensorCores, MultiplyHalves) {
  expect_product({64, 48, 64}, DType::F16, "ahead(");
  expect_product({64, 48, 64}, DType::BF16, "ahead(");
  expect_product({64, 48, 160}, DType::F16, "ahead(");
}

TEST(CudaTensorCores, MultiplyRaggedSizes) {
  expect_product({50, 37, 45}, DType::F16);
}

TEST(CudaTensorCores, MultiplyRoundedSingles) {
  const char* tf32 = std::getenv("TF32");
  if (!tf32 || tf32[0] != '1') GTEST_SKIP() << "products.py runs it with TF32=1";
  expect_product({64, 48, 64}, DType::F32, "ahead(");
  expect_product({50, 40, 100}, DType::F32, "ahead(");
  expect_product({50, 37, 45}, DType::F32);
}

// A group's tiles are copied to shared memory: each operand plain or transposed, ragged.
TEST(CudaSharedMemory, HoldsTheTilesOfProducts) {
  const Sizes s{72, 70, 48};
  const std::vector<float> a = small_integers(s.m * s.k, 1), b = small_integers(s.k * s.n, 2);
  for (int turned = 0; turned < 4; ++turned) {
    const Tensor left =
        (turned & 1) ? Tensor::from(a, {s.k, s.m}).permute({1, 0}) : Tensor::from(a, {s.m, s.k});
    const Tensor right =
        (turned & 2) ? Tensor::from(b, {s.n, s.k}).permute({1, 0}) : Tensor::from(b, {s.k, s.n});
    const Tensor product = left.matmul(right);
    EXPECT_THAT(product.schedule().back().optimisations(), HasSubstr("stage("));
    const std::vector<float> got = product.to_vector<float>();
    const auto at = [](const std::vector<float>& x, bool is_turned, int64_t i, int64_t j,
                       int64_t rows, int64_t columns) {
      return x[static_cast<size_t>(is_turned ? j * rows + i : i * columns + j)];
    };
    for (int64_t i = 0; i < s.m; ++i)
      for (int64_t j = 0; j < s.n; ++j) {
        float sum = 0;
        for (int64_t l = 0; l < s.k; ++l)
          sum += at(a, turned & 1, i, l, s.m, s.k) * at(b, turned & 2, l, j, s.k, s.n);
        ASSERT_EQ(got[static_cast<size_t>(i * s.n + j)], sum) << turned << ": " << i << ", " << j;
      }
  }
}

TEST(CudaTensorCores, LeaveSinglesAlone) {
  const Tensor a = Tensor::from(small_integers(64 * 64, 1), {64, 64});
  EXPECT_THAT(a.matmul(a).schedule().back().optimisations(), Not(HasSubstr("tensor_core(")));
}

}  // namespace
}  // namespace plugrad
