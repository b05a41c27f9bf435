// Reductions over terms gathered by a data-dependent index, large enough to be sorted by index,
// against plain loops.
#include <cmath>
#include <limits>
#include <random>

#include "expect.h"
#include "plugrad/jit.h"
#include "plugrad/kernel.h"

namespace plugrad {
namespace {

constexpr int64_t kRows = 300, kTerms = 1000;

std::vector<int32_t> random_places(size_t count, uint32_t seed, int32_t low = 0,
                                   int32_t high = kRows) {
  std::mt19937 random(seed);
  std::vector<int32_t> out(count);
  for (int32_t& v : out)
    v = low + static_cast<int32_t>(random() % static_cast<uint32_t>(high - low));
  return out;
}

std::vector<float> random_values(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& v : out) v = (static_cast<float>(random() % 2000) - 1000) / 7;
  return out;
}

// (terms, rows), true if a term's index is the row.
Tensor hits(const Tensor& places, int64_t rows = kRows) {
  return places.unsqueeze(-1) == Tensor::arange(rows);
}

// Sums of each row in the order of the terms, each rounded to f32.
std::vector<float> sums_in_order(const std::vector<int32_t>& places,
                                 const std::vector<float>& values, size_t columns,
                                 int64_t rows = kRows) {
  std::vector<float> out(static_cast<size_t>(rows) * columns, 0.0f);
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i] >= 0 && places[i] < rows)
      for (size_t b = 0; b < columns; ++b)
        out[static_cast<size_t>(places[i]) * columns + b] += values[i * columns + b];
  return out;
}

TEST(Indexed, SumsAreAddedInTheOrderOfTheTerms) {
  for (size_t columns : {1u, 5u, 16u, 40u, 67u}) {
    const std::vector<int32_t> p = random_places(kTerms, 1, -3, kRows + 3);
    const std::vector<float> v = random_values(kTerms * columns, 2);
    const Tensor values = Tensor::from(v, {kTerms, 1, static_cast<int64_t>(columns)});
    const Tensor sum = where(hits(Tensor::from(p)).unsqueeze(-1), values, 0).sum(0);
    EXPECT_EQ(sum.to_vector<float>(), sums_in_order(p, v, columns)) << columns;  // bitwise equal
  }
}

TEST(Indexed, RowsAreSharedOutWhereTheyAreManyAndTermsAreFew) {
  constexpr int64_t rows = 20001;
  const std::vector<int32_t> p = random_places(37, 3, 0, rows);
  const std::vector<float> v = random_values(37 * 3, 4);
  const Tensor values = Tensor::from(v, {37, 1, 3});
  const Tensor sum = where(hits(Tensor::from(p), rows).unsqueeze(-1), values, 0).sum(0);
  EXPECT_EQ(sum.to_vector<float>(), sums_in_order(p, v, 3, rows));
}

TEST(Indexed, TermsAreComputedInTheKernelThatStoresThem) {
  const std::vector<int32_t> p = random_places(kTerms, 5);
  const std::vector<float> v = random_values(kTerms * 8, 6);
  const Tensor table = Tensor::zeros({kRows, 8}).contiguous().realize(),
               given = Tensor::from(v, {kTerms, 8}).realize(), places = Tensor::from(p).realize();
  const Tensor g = gradient((embedding(table, places) * (given.relu() * 2 + 1)).sum(), {table})[0];
  EXPECT_EQ(g.schedule().size(), 1u);
  std::vector<float> terms = v;
  for (float& x : terms) x = std::max(x, 0.0f) * 2 + 1;
  expect_near(g.to_vector<double>(), [&] {
    const std::vector<float> sums = sums_in_order(p, terms, 8);
    return std::vector<double>(sums.begin(), sums.end());
  }());
}

TEST(Indexed, OddNumbersStayInTheirRows) {
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<int32_t> p = random_places(kTerms, 7, 10, kRows);
  std::vector<float> v = random_values(kTerms, 8);
  for (size_t i : {0u, 1u, 2u, 3u, 4u}) p[i] = static_cast<int32_t>(i);
  v[0] = NAN, v[1] = inf, v[2] = -inf, v[3] = -0.0f, v[4] = 1;
  p[900] = 4, v[900] = NAN;
  const std::vector<float> sum =
      where(hits(Tensor::from(p)), Tensor::from(v).unsqueeze(-1), 0).sum(0).to_vector<float>();
  EXPECT_TRUE(std::isnan(sum[0]) && std::isnan(sum[4]));
  EXPECT_EQ(sum[1], inf);
  EXPECT_EQ(sum[2], -inf);
  EXPECT_TRUE(sum[3] == 0 && !std::signbit(sum[3]));  // sums begin at +0
  for (size_t r = 5; r < 10; ++r) EXPECT_TRUE(sum[r] == 0 && !std::signbit(sum[r])) << r;
  const std::vector<float> want = sums_in_order(p, v, 1);
  for (size_t r = 10; r < want.size(); ++r) EXPECT_EQ(sum[r], want[r]) << r;
}

TEST(Indexed, ProductsMaximaAndCounts) {
  const std::vector<int32_t> p = random_places(kTerms, 9);
  std::vector<float> v = random_values(kTerms, 10);
  v[17] = NAN;
  std::vector<float> product(kRows, 1), top(kRows, -std::numeric_limits<float>::infinity());
  std::vector<int32_t> count(kRows, 0), last(kRows, std::numeric_limits<int32_t>::min());
  for (size_t i = 0; i < p.size(); ++i) {
    const auto r = static_cast<size_t>(p[i]);
    product[r] *= v[i];
    top[r] = std::isnan(v[i]) || std::isnan(top[r]) ? NAN : std::max(top[r], v[i]);
    ++count[r];
    last[r] = static_cast<int32_t>(i);
  }
  const Tensor hit = hits(Tensor::from(p)), values = Tensor::from(v).unsqueeze(-1);
  const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
    for (size_t i = 0; i < b.size(); ++i)
      EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
          << i << ": " << a[i] << " " << b[i];
  };
  same(where(hit, values, 1).prod(0).to_vector<float>(), product);
  same(where(hit, values, -std::numeric_limits<double>::infinity()).max(0).to_vector<float>(), top);
  EXPECT_EQ(hit.sum(0, false, DType::I32).to_vector<int32_t>(), count);
  const Tensor number = Tensor::arange(kTerms).unsqueeze(-1);
  EXPECT_EQ(where(hit, number, std::numeric_limits<int32_t>::min()).max(0).to_vector<int32_t>(),
            last);
}

TEST(Indexed, SmallFloatsAddUpInF32AndIntegersWrap) {
  const Tensor places = Tensor::full({4096}, 3) + Tensor::from(std::vector<int32_t>(4096, 0));
  const Tensor hit = hits(places);
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64}) {
    const std::vector<double> sum =
        where(hit, Tensor::ones({4096, 1}).cast(dtype), 0).sum(0, false, dtype).to_vector<double>();
    EXPECT_EQ(sum[3], 4096) << name_of(dtype);  // accumulating in f16 would stop at 2048
    EXPECT_EQ(sum[2], 0) << name_of(dtype);
  }
  for (DType dtype : {DType::U8, DType::I16, DType::U32, DType::I64, DType::U64}) {
    const std::vector<int64_t> sum = where(hit, Tensor::full({4096, 1}, 33).cast(dtype), 0)
                                         .sum(0, false, dtype)
                                         .to_vector<int64_t>();
    const int64_t all = 4096 * 33;
    const int64_t wrapped = dtype == DType::U8    ? all % 256
                            : dtype == DType::I16 ? static_cast<int16_t>(all)
                                                  : all;
    EXPECT_EQ(sum[3], wrapped) << name_of(dtype);
    EXPECT_EQ(sum[0], 0) << name_of(dtype);
  }
}

TEST(Indexed, ConditionsBesideTheIndexAndAxesWithoutIt) {
  const std::vector<int32_t> p = random_places(kTerms, 12);
  const std::vector<float> v = random_values(3 * kTerms, 13);
  const Tensor values = Tensor::from(v, {3, kTerms, 1});
  const Tensor chosen = hits(Tensor::from(p)) & (values > -20);
  std::vector<double> want(kRows, 0),
      got = where(chosen, values, 0).sum({0, 1}).to_vector<double>();
  for (size_t a = 0; a < 3; ++a)
    for (size_t i = 0; i < kTerms; ++i) {
      const float x = v[a * kTerms + i];
      if (x > -20) want[static_cast<size_t>(p[i])] += static_cast<double>(x);
    }
  expect_near(got, want);
}

// Sums must not share memory with their terms or indices, even if these have no other consumer.
TEST(Indexed, WhatIsReadIsNotOverwritten) {
  constexpr int64_t n = 20000;
  const std::vector<int32_t> p = random_places(n, 14, 0, n);
  const Tensor places = Tensor::from(p).realize();
  auto step =
      jit([&](const Tensor& x) { return where(hits(places, n), x.unsqueeze(-1), 0).sum(0); });
  std::vector<float> want(n, 1.0f);
  Tensor x = Tensor::ones({n}).contiguous().realize();
  for (int turn = 0; turn < 5; ++turn) {
    x = step(x);
    want = sums_in_order(p, want, 1, n);
    ASSERT_EQ(x.to_vector<float>(), want) << turn;
  }
  auto places_step = jit([&](const Tensor& at) {
    return where(hits(at, n), Tensor::arange(n).unsqueeze(-1) % 7, 0).sum(0, false, DType::I32);
  });
  Tensor at = Tensor::from(p).realize();
  std::vector<int32_t> now = p;
  for (int turn = 0; turn < 5; ++turn) {
    at = places_step(at);
    std::vector<int32_t> next(n, 0);
    for (size_t i = 0; i < now.size(); ++i)
      if (now[i] >= 0 && now[i] < n)
        next[static_cast<size_t>(now[i])] += static_cast<int32_t>(i % 7);
    now = next;
    ASSERT_EQ(at.to_vector<int32_t>(), now) << turn;
  }
}

}  // namespace
}  // namespace plugrad
