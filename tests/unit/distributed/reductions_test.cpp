// Reductions of every dtype, and their order.
#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "elements.h"
#include "ranks.h"

namespace plugrad::distributed::test {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<double> all_reduce(Reduction reduction, DType dtype,
                               const std::vector<double>& values) {
  std::vector<std::byte> memory = stored(dtype, values);
  backend()->run({.kind = Kind::AllReduce,
                  .reduction = reduction,
                  .dtype = dtype,
                  .send = memory.data(),
                  .receive = memory.data(),
                  .counts = {static_cast<std::int64_t>(values.size())},
                  .group = all_ranks(),
                  .tensor = std::string(name_of(dtype))});
  return loaded(dtype, memory);
}

double combined(Reduction reduction, double a, double b) {
  switch (reduction) {
    case Reduction::Add:
      return a + b;
    case Reduction::Mul:
      return a * b;
    case Reduction::Max:
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmax(a, b);
    case Reduction::Min:
      return std::isnan(a) || std::isnan(b) ? kNan : std::fmin(a, b);
  }
  return kNan;
}

// Neighbours first; the last of an odd number waits. Rounds to the dtype after each step.
double tree(Reduction reduction, DType dtype, std::vector<double> values) {
  while (values.size() > 1) {
    std::vector<double> next;
    for (std::size_t i = 0; i < values.size(); i += 2)
      next.push_back(i + 1 < values.size()
                         ? round_float(combined(reduction, values[i], values[i + 1]), dtype)
                         : values[i]);
    values = next;
  }
  return values[0];
}

// Rank r contributes small whole numbers, which all dtypes hold, and whose results they hold.
TEST(Reductions, EveryDtypeAndReduction) {
  const std::uint32_t ranks = count_of_ranks();
  const auto value = [](std::uint32_t rank, std::size_t i) {
    return static_cast<double>((i + rank) % 3);
  };
  for (const DType dtype : kDTypes) {
    if (dtype == DType::Bool) continue;
    for (const Reduction reduction :
         {Reduction::Add, Reduction::Mul, Reduction::Max, Reduction::Min}) {
      std::vector<double> own(37);
      for (std::size_t i = 0; i < own.size(); ++i) own[i] = value(self(), i);
      const std::vector<double> result = all_reduce(reduction, dtype, own);
      for (std::size_t i = 0; i < own.size(); ++i) {
        double expected = value(0, i);
        for (std::uint32_t r = 1; r < ranks; ++r)
          expected = combined(reduction, expected, value(r, i));
        ASSERT_EQ(result[i], expected)
            << name_of(dtype) << " " << name_of(reduction) << " at " << i;
      }
    }
  }
}

// Ranks contribute 0 0, 0 1, 1 1, …: rank 0 the first, all others the second number.
TEST(Reductions, OfBooleansAreOrAndAnd) {
  const bool is_first = self() == 0;
  const std::vector<double> own =
      is_first ? std::vector<double>{0, 0, 1, 1} : std::vector<double>{0, 1, 0, 1};
  const std::vector<double> any{0, 1, 1, 1}, all{0, 0, 0, 1};
  EXPECT_EQ(all_reduce(Reduction::Add, DType::Bool, own), any);
  EXPECT_EQ(all_reduce(Reduction::Max, DType::Bool, own), any);
  EXPECT_EQ(all_reduce(Reduction::Mul, DType::Bool, own), all);
  EXPECT_EQ(all_reduce(Reduction::Min, DType::Bool, own), all);
}

TEST(Reductions, OfIntegersWrapAround) {
  const auto ranks = static_cast<double>(count_of_ranks());
  EXPECT_EQ(all_reduce(Reduction::Add, DType::I8, {100})[0],
            static_cast<std::int8_t>(static_cast<int>(100 * ranks)));
  EXPECT_EQ(all_reduce(Reduction::Add, DType::U8, {200})[0],
            static_cast<std::uint8_t>(static_cast<int>(200 * ranks)));
}

TEST(Reductions, MaxAndMinKeepNan) {
  const bool has_nan = self() == count_of_ranks() - 1;
  for (const DType dtype :
       {DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3, DType::F8E5M2}) {
    for (const Reduction reduction : {Reduction::Max, Reduction::Min}) {
      const std::vector<double> result =
          all_reduce(reduction, dtype, {has_nan ? kNan : 1, has_nan ? 1 : kNan, 2});
      EXPECT_TRUE(std::isnan(result[0])) << name_of(dtype);
      EXPECT_TRUE(std::isnan(result[1])) << name_of(dtype);
      EXPECT_EQ(result[2], 2) << name_of(dtype);
    }
  }
}

// 65504 is the largest f16.
TEST(Reductions, OfF16OverflowToInfinity) {
  EXPECT_EQ(all_reduce(Reduction::Add, DType::F16, {65504, -65504, 0x1p-24}),
            (std::vector<double>{kInfinity, -kInfinity, 0x1p-24 * count_of_ranks()}));
}

// Values of many magnitudes, so that another order gives other bits. Every rank knows all values.
template <class Draw>
void expect_tree(DType dtype, Draw draw) {
  const std::uint32_t ranks = count_of_ranks();
  constexpr std::size_t kCount = 5000;
  std::vector<std::vector<double>> values(ranks);
  for (std::uint32_t r = 0; r < ranks; ++r) {
    std::mt19937 random(r);
    for (std::size_t i = 0; i < kCount; ++i) values[r].push_back(round_float(draw(random), dtype));
  }
  const std::vector<double> result = all_reduce(Reduction::Add, dtype, values[self()]);
  for (std::size_t i = 0; i < kCount; ++i) {
    std::vector<double> column;
    for (const auto& row : values) column.push_back(row[i]);
    ASSERT_EQ(result[i], tree(Reduction::Add, dtype, column)) << name_of(dtype) << " at " << i;
  }
}

TEST(Reductions, AddAsABalancedTreeOfRanks) {
  const auto draw = [](std::mt19937& random) {
    return std::ldexp(static_cast<double>(random()) / 0x1p31 - 1, static_cast<int>(random() % 12));
  };
  for (const DType dtype : {DType::F32, DType::F16, DType::BF16, DType::F64})
    expect_tree(dtype, draw);
}

// Subnormal f16 and bf16 among them; sums of two are exact in f32, so that they round once.
TEST(Reductions, SmallFloatsRoundOnceAnAddition) {
  expect_tree(DType::F16, [](std::mt19937& random) {
    return decode_small_float(static_cast<std::uint16_t>(random() & 0xbbff), DType::F16);
  });
  expect_tree(DType::F8E4M3, [](std::mt19937& random) {
    return decode_small_float(static_cast<std::uint16_t>(random() & 0xb7), DType::F8E4M3);
  });
}

TEST(Reductions, ReduceScatterAddsInTheSameOrder) {
  const std::uint32_t ranks = count_of_ranks();
  constexpr std::int64_t kPart = 999;
  const auto value = [](std::uint32_t rank, std::int64_t i) {
    return std::sin(static_cast<float>(i + 1)) * std::exp2(static_cast<float>((i + rank) % 23));
  };
  std::vector<float> own, part(kPart);
  for (std::int64_t i = 0; i < kPart * ranks; ++i) own.push_back(value(self(), i));
  backend()->run({.kind = Kind::ReduceScatter,
                  .send = bytes(own),
                  .receive = bytes(part),
                  .counts = std::vector<std::int64_t>(ranks, kPart),
                  .group = all_ranks(),
                  .tensor = "values"});
  for (std::int64_t i = 0; i < kPart; ++i) {
    std::vector<double> column;
    for (std::uint32_t r = 0; r < ranks; ++r) column.push_back(value(r, kPart * self() + i));
    ASSERT_EQ(part[i], tree(Reduction::Add, DType::F32, column)) << i;
  }
}

}  // namespace
}  // namespace plugrad::distributed::test
