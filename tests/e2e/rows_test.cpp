// Row functions on rows of any length, with infinities, NaN and large means, compared with double
// on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <span>

#include "plugrad/plugrad.h"

namespace plugrad {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

using Row = std::vector<float>;

Row softmax_row(std::span<const float> row, bool log) {
  double top = -kInf, sum = 0;
  for (float v : row) top = std::isnan(v) || std::isnan(top) ? kNaN : std::max<double>(top, v);
  for (float v : row) sum += std::exp(v - top);
  Row out;
  for (float v : row)
    out.push_back(static_cast<float>(log ? v - top - std::log(sum) : std::exp(v - top) / sum));
  return out;
}

Row layernorm_row(std::span<const float> row) {
  double mean = 0, square = 0;
  for (float v : row) mean += v / static_cast<double>(row.size());
  for (float v : row) square += (v - mean) * (v - mean) / static_cast<double>(row.size());
  Row out;
  for (float v : row) out.push_back(static_cast<float>((v - mean) / std::sqrt(square + 1e-5)));
  return out;
}

// Reproducible numbers in [low, low + width).
Row numbers(size_t count, float low, float width) {
  Row row(count);
  uint32_t state = 2463534242u;
  for (float& v : row) {
    state ^= state << 13, state ^= state >> 17, state ^= state << 5;
    v = low + width * (static_cast<float>(state >> 8) / 16777216.0f);
  }
  return row;
}

void expect_near(const Row& got, const Row& want, double tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) || std::isinf(want[i]))
      ASSERT_EQ(std::isnan(want[i]) ? std::isnan(got[i]) : got[i] == want[i], true)
          << what << " at " << i;
    else
      ASSERT_NEAR(got[i], want[i], tolerance * (1 + std::abs(want[i]))) << what << " at " << i;
  }
}

// Several equal rows, so that kernels loop over rows.
Tensor rows_of(const Row& row, int64_t rows) {
  Row all;
  for (int64_t i = 0; i < rows; ++i) all.insert(all.end(), row.begin(), row.end());
  return Tensor::from(all, Shape{rows, static_cast<int64_t>(row.size())});
}

Row last_row(const Tensor& y, size_t count) {
  const Row all = y.to_vector<float>();
  return Row(all.end() - static_cast<std::ptrdiff_t>(count), all.end());
}

TEST(Rows, AreRightAtAnyLength) {
  for (size_t n : {1u, 2u, 15u, 16u, 17u, 63u, 65u, 1000u, 4096u, 70001u, 300000u})
    for (int64_t rows : {1, 3, 40}) {
      if (n > 10000 && rows > 3) continue;
      const Row row = numbers(n, -4, 8);
      const Tensor x = rows_of(row, rows);
      const std::string what = std::to_string(rows) + " rows of " + std::to_string(n);
      expect_near(last_row(x.softmax(), n), softmax_row(row, false), 2e-6, "softmax of " + what);
      expect_near(last_row(x.log_softmax(), n), softmax_row(row, true), 2e-6,
                  "log_softmax of " + what);
      expect_near(last_row(x.layernorm(), n), layernorm_row(row), 2e-4, "layernorm of " + what);
    }
}

TEST(Rows, InfinitiesAndNaNAreWhatTheFormulaMakesOfThem) {
  for (size_t n : {1u, 5u, 64u, 200u})
    for (const Row& special :
         std::vector<Row>{{kInf}, {-kInf}, {kNaN}, {kInf, -kInf}, {-kInf, kNaN}}) {
      Row row = numbers(n, -1, 2);
      for (size_t i = 0; i < special.size(); ++i) row[(n - 1 + i * 7) % n] = special[i];
      expect_near(last_row(rows_of(row, 9).softmax(), n), softmax_row(row, false), 2e-6, "softmax");
      expect_near(last_row(rows_of(row, 9).log_softmax(), n), softmax_row(row, true), 2e-6,
                  "log_softmax");
    }
  const Row none(100, -kInf);
  for (float v : last_row(rows_of(none, 4).softmax(), 100)) EXPECT_TRUE(std::isnan(v));
}

TEST(Rows, LargeMeansAndWideRangesLoseNothing) {
  const Row far = numbers(1024, 1e4f, 1), wide = numbers(1024, -500, 1000);
  expect_near(last_row(rows_of(far, 8).layernorm(), 1024), layernorm_row(far), 1e-2, "layernorm");
  expect_near(last_row(rows_of(far, 8).softmax(), 1024), softmax_row(far, false), 2e-6, "softmax");
  expect_near(last_row(rows_of(wide, 8).softmax(), 1024), softmax_row(wide, false), 2e-6,
              "softmax");
}

TEST(Rows, NoElementsGiveNone) {
  EXPECT_TRUE(Tensor::zeros({3, 0}).softmax().to_vector<float>().empty());
  EXPECT_TRUE(Tensor::zeros({0, 5}).layernorm().to_vector<float>().empty());
}

// More loops than one kernel may have.
TEST(Rows, MaximaOfManyPrefixesAreAdded) {
  const Row row = numbers(250, -3, 6);
  const Tensor x = rows_of(row, 2).realize();
  Tensor sum;
  double want = 0;
  for (int64_t n = 1; n <= 250; ++n) {
    const Tensor most = x.shrink({{0, 2}, {0, n}}).max(1);
    sum = n == 1 ? most : sum + most;
    want += *std::max_element(row.begin(), row.begin() + n);
  }
  EXPECT_NEAR(sum.to_vector<float>()[1], want, 1e-3);
}

TEST(Rows, AResultOfAnotherTypeIsMadeToo) {
  const Row row = numbers(130, -3, 6);
  const Row want = softmax_row(row, false);
  const Tensor y = rows_of(row, 7).softmax().cast(DType::F64);
  const auto all = y.to_vector<double>();
  for (size_t j = 0; j < row.size(); ++j) EXPECT_NEAR(all[6 * 130 + j], want[j], 1e-6) << j;
}

}  // namespace
}  // namespace plugrad
