#include "ir/fold.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace plugrad {
namespace {

struct FoldTest : ::testing::Test {
  Graph g;
  int64_t ints(Op op, DType dtype, int64_t a, int64_t b) {
    const Id sources[] = {g.constant(dtype, a), g.constant(dtype, b)};
    return static_cast<int64_t>(fold(g, op, is_compare(op) ? DType::Bool : dtype, sources).value());
  }
  double floats(Op op, DType dtype, double a, double b = 0) {
    const Id sources[] = {g.constant(dtype, a), g.constant(dtype, b)};
    return std::bit_cast<double>(
        fold(g, op, dtype, std::span(sources, op_info(op).max_sources)).value());
  }
  int64_t cast(DType from, double value, DType to) {
    const Id source[] = {g.constant(from, value)};
    return static_cast<int64_t>(fold(g, Op::Cast, to, source).value());
  }
};

TEST_F(FoldTest, IntegersWrap) {
  EXPECT_EQ(ints(Op::Add, DType::I8, 127, 1), -128);
  EXPECT_EQ(ints(Op::Mul, DType::U8, 200, 2), 144);
  EXPECT_EQ(ints(Op::Sub, DType::U32, 0, 1), 0xffffffff);
  EXPECT_EQ(ints(Op::Add, DType::I64, INT64_MAX, 1), INT64_MIN);
}

TEST_F(FoldTest, DivisionByItsNameAndByZero) {
  EXPECT_EQ(ints(Op::IDiv, DType::I32, -7, 2), -3);
  EXPECT_EQ(ints(Op::Mod, DType::I32, -7, 2), -1);
  EXPECT_EQ(ints(Op::FloorDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(ints(Op::FloorMod, DType::I32, -7, 2), 1);
  EXPECT_EQ(ints(Op::FloorMod, DType::I32, 7, -2), -1);
  EXPECT_EQ(ints(Op::IDiv, DType::I32, 5, 0), 0);
  EXPECT_EQ(ints(Op::Mod, DType::I32, 5, 0), 5);
  EXPECT_EQ(ints(Op::IDiv, DType::I32, INT32_MIN, -1), INT32_MIN);
  EXPECT_EQ(ints(Op::IDiv, DType::I64, INT64_MIN, -1), INT64_MIN);
  EXPECT_EQ(ints(Op::IDiv, DType::U64, -1, 2), INT64_MAX);
}

TEST_F(FoldTest, ShiftsBeyondTheBits) {
  EXPECT_EQ(ints(Op::Shl, DType::I32, 1, 31), INT32_MIN);
  EXPECT_EQ(ints(Op::Shl, DType::I32, 1, 32), 0);
  EXPECT_EQ(ints(Op::Shr, DType::I32, -8, 40), -1);
  EXPECT_EQ(ints(Op::Shr, DType::U32, 0x80000000ll, 31), 1);
}

// Known answers of Random123 (Salmon et al. 2011).
TEST_F(FoldTest, ThreefryHashesAsItsAuthorsSay) {
  const auto hashed = [&](uint32_t key0, uint32_t key1, uint32_t low, uint32_t high) {
    std::vector<Id> sources;
    for (const uint32_t word : {key0, key1, low, high})
      sources.push_back(g.constant(DType::U32, int64_t{word}));
    return std::pair(fold(g, Op::Threefry0, DType::U32, sources).value(),
                     fold(g, Op::Threefry1, DType::U32, sources).value());
  };
  EXPECT_EQ(hashed(0, 0, 0, 0), std::pair(uint64_t{0x6b200159}, uint64_t{0x99ba4efe}));
  EXPECT_EQ(hashed(~0u, ~0u, ~0u, ~0u), std::pair(uint64_t{0x1cb996fc}, uint64_t{0xbb002be7}));
  EXPECT_EQ(hashed(0x13198a2e, 0x03707344, 0x243f6a88, 0x85a308d3),
            std::pair(uint64_t{0xc4923a9c}, uint64_t{0x483df7a0}));
}

TEST_F(FoldTest, UnsignedCompareAsUnsigned) {
  EXPECT_EQ(ints(Op::CmpLt, DType::U64, -1, 1), 0);
  EXPECT_EQ(ints(Op::Max, DType::U64, -1, 1), -1);
}

TEST_F(FoldTest, FloatsRoundOnceInTheirDtype) {
  EXPECT_EQ(floats(Op::Add, DType::F32, 16777216.0, 1.0), 16777216.0);
  EXPECT_EQ(floats(Op::Mul, DType::F16, 65504.0, 2.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(floats(Op::Add, DType::BF16, 256.0, 1.0), 256.0);
  EXPECT_TRUE(std::signbit(floats(Op::Neg, DType::F32, 0.0)));
  EXPECT_TRUE(std::isnan(floats(Op::Max, DType::F32, NAN, 1.0)));
}

TEST_F(FoldTest, CastsSaturateAndTruncate) {
  EXPECT_EQ(cast(DType::F32, 3.9, DType::I32), 3);
  EXPECT_EQ(cast(DType::F32, -1e20, DType::I32), INT32_MIN);
  EXPECT_EQ(cast(DType::F32, NAN, DType::I8), 0);
  EXPECT_EQ(cast(DType::F32, NAN, DType::Bool), 1);
}

TEST_F(FoldTest, BitcastsReadStorage) {
  const Id one[] = {g.constant(DType::F32, 1.0)};
  EXPECT_EQ(fold(g, Op::Bitcast, DType::U32, one), 0x3f800000u);
  const Id bits[] = {g.constant(DType::U32, int64_t{0x40490fdb})};
  EXPECT_FLOAT_EQ(
      static_cast<float>(std::bit_cast<double>(*fold(g, Op::Bitcast, DType::F32, bits))),
      3.14159274f);
}

}  // namespace
}  // namespace plugrad
