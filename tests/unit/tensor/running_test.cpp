// Long scans, scatters and selections against plain loops.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "expect.h"
#include "plugrad/kernel.h"

namespace plugrad {
namespace {

std::vector<int32_t> random_numbers(size_t count, int32_t low, int32_t high, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> out(count);
  for (int32_t& v : out)
    v = low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low));
  return out;
}

std::vector<float> as_floats(const std::vector<int32_t>& v) {
  return {v.begin(), v.end()};
}

class RunningScan : public testing::TestWithParam<int64_t> {};

TEST_P(RunningScan, IsWhatALoopMakes) {
  const auto n = static_cast<size_t>(GetParam());
  const std::vector<int32_t> x = random_numbers(n, -9, 10, 1);
  std::vector<int32_t> sum(n), top(n), place(n);
  std::partial_sum(x.begin(), x.end(), sum.begin());
  for (size_t i = 0; i < n; ++i) {
    const bool is_new = i == 0 || x[i] >= top[i - 1];
    top[i] = is_new ? x[i] : top[i - 1];
    place[i] = is_new ? static_cast<int32_t>(i) : place[i - 1];
  }
  const Tensor t = Tensor::from(x);
  EXPECT_EQ(t.cumsum(0).to_vector<int32_t>(), sum);
  // Exact in f32: no total reaches 2^24.
  EXPECT_EQ(t.cast(DType::F32).cumsum(0).to_vector<float>(), as_floats(sum));
  const auto [values, places] = t.cummax(0);
  EXPECT_EQ(values.to_vector<int32_t>(), top);
  EXPECT_EQ(places.to_vector<int32_t>(), place);
}

INSTANTIATE_TEST_SUITE_P(lengths, RunningScan,
                         testing::Values(0, 1, 32, 33, 37, 64, 65, 1023, 1025, 70001, 1000000));

TEST(Running, ScansOfEveryAxisDtypeAndKind) {
  const std::vector<int32_t> x = random_numbers(3 * 130 * 21, -4, 5, 2);
  const Tensor t = Tensor::from(x).reshape({3, 130, 21});
  for (DType dtype : {DType::I8, DType::U8, DType::I64, DType::U32, DType::F16, DType::F64}) {
    const std::vector<double> sums = t.cast(dtype).cumsum(1).to_vector<double>();
    const std::vector<double> tops = t.cast(dtype).cummax(1).first.to_vector<double>();
    const std::vector<double> given = t.cast(dtype).to_vector<double>();
    for (size_t a = 0; a < 3; ++a)
      for (size_t b = 0; b < 21; ++b) {
        double sum = 0, top = -INFINITY;
        for (size_t i = 0; i < 130; ++i) {
          const size_t at = (a * 130 + i) * 21 + b;
          sum += given[at];
          top = std::max(top, given[at]);
          ASSERT_EQ(sums[at], sum) << name_of(dtype) << at;
          ASSERT_EQ(tops[at], top) << name_of(dtype) << at;
        }
      }
  }
  const Tensor signs = where(t > 0, 1.0f, -1.0f);
  const std::vector<float> given = signs.to_vector<float>(),
                           products = signs.cumprod(1).to_vector<float>();
  float product = 1;
  for (size_t i = 0; i < 130; ++i) EXPECT_EQ(products[i * 21 + 5], product *= given[i * 21 + 5]);
  EXPECT_EQ(Tensor::zeros({0, 5}).cumsum(1).shape(), (Shape{0, 5}));
}

TEST(Running, NanStaysFromWhereItIs) {
  std::vector<float> x(200, 1.0f);
  x[100] = NAN;
  const std::vector<float> y = Tensor::from(x).cummax(0).first.to_vector<float>();
  EXPECT_EQ(y[99], 1.0f);
  for (size_t i = 100; i < 200; ++i) EXPECT_TRUE(std::isnan(y[i])) << i;
}

// A sum is NaN from the first opposite infinity on, also across block boundaries.
TEST(Running, InfinitiesCancelToNan) {
  for (const size_t second : {52u, 57u, 130u}) {
    std::vector<float> x(300, 1.0f);
    x[50] = INFINITY;
    x[second] = -INFINITY;
    const std::vector<float> y = Tensor::from(x).cumsum(0).to_vector<float>();
    for (size_t i = 0; i < x.size(); ++i) {
      if (i >= second) {
        EXPECT_TRUE(std::isnan(y[i])) << i;
      } else {
        EXPECT_EQ(y[i], i < 50 ? static_cast<float>(i + 1) : INFINITY) << i;
      }
    }
  }
}

// i32 is summed in i64, u8 in u64, beyond 32 bits.
TEST(Running, IntegersAddUpInSixtyFourBits) {
  const Tensor large = Tensor::full({1000}, 2000000000).cast(DType::I32).contiguous(),
               bytes = Tensor::full({1000}, 255).cast(DType::U8).contiguous();
  const Tensor sums = large.cumsum(0), small = bytes.cumsum(0);
  EXPECT_EQ(sums.dtype(), DType::I64);
  EXPECT_EQ(small.dtype(), DType::U64);
  const auto a = sums.to_vector<int64_t>();
  const auto b = small.to_vector<uint64_t>();
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(a[i], int64_t{2000000000} * static_cast<int64_t>(i + 1));
    ASSERT_EQ(b[i], 255 * (i + 1));
  }
  const auto top = (Tensor::arange(200).cast(DType::U32) + 4000000000u).cummax(0).first;
  EXPECT_EQ(top.to_vector<uint32_t>()[199], 4000000199u);
}

// 4,096 elements are scanned in blocks of 16 on three levels. Arguments need no kernel where computing
// them twice is little beside the scan, and the kernel of a block adds the preceding sums.
TEST(Running, ScansFuseWithTheirArguments) {
  const Tensor x = Tensor::arange(4096).cast(DType::F32).contiguous().realize();
  const size_t alone = x.cumsum(0).kernelize().size();
  EXPECT_EQ(alone, 5u);
  EXPECT_EQ((x * 2 + 1).cumsum(0).kernelize().size(), alone);
  EXPECT_EQ((x.exp() * 0.5).cumsum(0).kernelize().size(), alone);
  EXPECT_EQ(x.sin().exp().sin().cumsum(0).kernelize().size(), alone + 1);
  EXPECT_EQ((x * 2 + 1).cumsum(0).to_vector<float>()[4095], 4096.0f * 4096.0f);
}

TEST(Running, GradientsOfScans) {
  const std::vector<int32_t> x = random_numbers(150, 1, 3, 3);
  const Tensor t = (Tensor::from(x).cast(DType::F32) / 2.0f).realize(),
               w = Tensor::arange(150).cast(DType::F32);
  const std::vector<float> g = gradient((t.cumsum(0) * w).sum(), {t})[0].to_vector<float>();
  float after = 0;
  for (size_t i = 150; i-- > 0;) EXPECT_FLOAT_EQ(g[i], after += static_cast<float>(i));
  const std::vector<float> m = gradient((t.cummax(0).first * w).sum(), {t})[0].to_vector<float>();
  EXPECT_FLOAT_EQ(std::accumulate(m.begin(), m.end(), 0.0f), 149 * 75);
}

struct Rows {
  std::vector<int32_t> places;
  std::vector<float> values, expected;
};

Rows random_rows(int32_t rows, size_t count, size_t inner) {
  Rows r{random_numbers(count, -2, rows + 2, 4),
         as_floats(random_numbers(count * inner, -9, 9, 5)),
         {}};
  r.expected.assign(static_cast<size_t>(rows) * inner, 0);
  for (size_t i = 0; i < count; ++i) {
    if (r.places[i] < 0 || r.places[i] >= rows) continue;
    for (size_t d = 0; d < inner; ++d)
      r.expected[static_cast<size_t>(r.places[i]) * inner + d] += r.values[i * inner + d];
  }
  return r;
}

TEST(Running, GradientOfAnEmbeddingAddsRows) {
  for (size_t inner : {1u, 7u, 16u, 35u}) {
    const Rows r = random_rows(700, 1234, inner);
    const auto d = static_cast<int64_t>(inner);
    const Tensor table = Tensor::zeros({700, d}).contiguous().realize();
    const Tensor read = embedding(table, (Tensor::from(r.places) + 0));
    const Tensor g = gradient((read * Tensor::from(r.values).reshape({1234, d})).sum(), {table})[0];
    EXPECT_EQ(g.to_vector<float>(), r.expected) << inner;
  }
}

TEST(Running, ScatterOfAMillion) {
  constexpr size_t n = 1000000;
  const std::vector<int32_t> places = random_numbers(n, 0, 5000, 6),
                             values = random_numbers(n, -9, 10, 7);
  std::vector<int32_t> sum(5000, 3), last(5000, 3);
  for (size_t i = 0; i < n; ++i) {
    sum[static_cast<size_t>(places[i])] += values[i];
    last[static_cast<size_t>(places[i])] = values[i];
  }
  const Tensor x = Tensor::full({5000}, 3), p = Tensor::from(places), v = Tensor::from(values);
  EXPECT_EQ(x.scatter(0, p, v, Combine::Sum).to_vector<int32_t>(), sum);
  EXPECT_EQ(x.cast(DType::F32).scatter(0, p, v.cast(DType::F32), Combine::Sum).to_vector<float>(),
            as_floats(sum));
  EXPECT_EQ(x.scatter(0, p, v).to_vector<int32_t>(), last);
  Tensor y = Tensor::full({5000}, 3).contiguous();
  y[{p}] = v;
  EXPECT_EQ(y.to_vector<int32_t>(), last);
}

TEST(Running, ScatterAlongAMiddleAxisLeavesTheRestAlone) {
  const int64_t a = 2, rows = 300, count = 260, b = 3;
  const std::vector<int32_t> places = random_numbers(static_cast<size_t>(a * count * b), 0, 200, 8);
  const std::vector<float> values = as_floats(random_numbers(places.size(), -9, 10, 9));
  const Tensor x = Tensor::arange(a * rows * (b + 1)).cast(DType::F32).reshape({a, rows, b + 1});
  std::vector<float> sum = x.to_vector<float>(), mean = sum, count_at(sum.size(), 1),
                     only(sum.size(), 0);
  for (int64_t i = 0; i < a; ++i)
    for (int64_t j = 0; j < count; ++j)
      for (int64_t k = 0; k < b; ++k) {
        const auto from = static_cast<size_t>((i * count + j) * b + k);
        const auto at = static_cast<size_t>((i * rows + places[from]) * (b + 1) + k);
        sum[at] += values[from], only[at] += values[from], ++count_at[at];
      }
  const Tensor p = Tensor::from(places).reshape({a, count, b}),
               v = Tensor::from(values).reshape({a, count, b});
  EXPECT_EQ(x.scatter_reduce(1, p, v, Combine::Sum).to_vector<float>(), sum);
  for (size_t i = 0; i < sum.size(); ++i) {
    if (count_at[i] == 1) only[i] = mean[i];
    mean[i] = sum[i] / count_at[i];
  }
  EXPECT_EQ(x.scatter_reduce(1, p, v, Combine::Sum, false).to_vector<float>(), only);
  expect_near(x.scatter_reduce(1, p, v, Combine::Mean).to_vector<double>(),
              {mean.begin(), mean.end()});
  const std::vector<float> g =
      gradient((x.scatter(1, p, v, Combine::Sum) * x).sum(), {v})[0].to_vector<float>();
  const std::vector<float> given = x.to_vector<float>();
  for (size_t from = 0; from < g.size(); ++from) {
    const size_t i = from / static_cast<size_t>(count * b), k = from % static_cast<size_t>(b);
    EXPECT_EQ(g[from],
              given[(i * static_cast<size_t>(rows) + static_cast<size_t>(places[from])) * 4 + k]);
  }
}

TEST(Running, TheFewLargestOfManyKeepTheOrderOfTies) {
  for (size_t n : {600u, 4097u, 1000000u}) {
    std::vector<float> x = as_floats(random_numbers(n, 0, static_cast<int32_t>(n / 3), 10));
    x[n / 2] = NAN;
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    for (const bool largest : {true, false}) {
      std::vector<int32_t> best = order;
      const auto key = [&](int32_t i) {
        return std::isnan(x[static_cast<size_t>(i)]) ? INFINITY : x[static_cast<size_t>(i)];
      };
      std::partial_sort(best.begin(), best.begin() + 10, best.end(), [&](int32_t a, int32_t b) {
        return key(a) != key(b) ? (key(a) > key(b)) == largest : a < b;
      });
      best.resize(10);
      const auto [values, places] = Tensor::from(x).topk(10, 0, largest);
      EXPECT_EQ(places.to_vector<int32_t>(), best) << n << largest;
      EXPECT_EQ(values.shape(), (Shape{10}));
    }
  }
}

}  // namespace
}  // namespace plugrad
