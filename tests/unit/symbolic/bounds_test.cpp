#include "symbolic/bounds.h"

#include <gtest/gtest.h>

#include <random>

#include "unit/symbolic/random_expression.h"

namespace plugrad {
namespace {

TEST(Bounds, LinearSumOfRanges) {
  Graph g;
  const Id i = make_range(g, 4, 0, AxisKind::Loop), j = make_range(g, 8, 1, AxisKind::Loop);
  const Id sum =
      g.binary(Op::Add, g.binary(Op::Mul, i, g.index(8)), g.binary(Op::Add, j, g.index(-3)));
  Bounds bounds(g);
  EXPECT_EQ(bounds[sum], (Interval{-3, 28}));
  EXPECT_EQ(bounds[g.binary(Op::FloorDiv, sum, g.index(8))], (Interval{-1, 3}));
  EXPECT_EQ(bounds[g.binary(Op::FloorMod, sum, g.index(8))], (Interval{0, 7}));
  EXPECT_EQ(bounds[g.binary(Op::CmpLt, sum, g.index(29))], (Interval{1, 1}));
}

TEST(Bounds, IntegersThatMayWrapHaveAllTheirDtype) {
  Graph g;
  const Id i = g.cast(make_range(g, 100, 0, AxisKind::Loop), DType::I8);
  Bounds bounds(g);
  EXPECT_EQ(bounds[i], (Interval{0, 99}));
  EXPECT_EQ(bounds[g.binary(Op::Add, i, i)], (Interval{-128, 127}));
}

TEST(Bounds, IndexSaturates) {
  Graph g;
  const Id huge = make_range(g, INT64_MAX, 0, AxisKind::Loop);
  Bounds bounds(g);
  EXPECT_EQ(bounds[g.binary(Op::Mul, huge, g.index(4))].hi, INT64_MAX);
}

TEST(Bounds, BigUnsignedConstantsCompareAsUnsigned) {
  Graph g;
  const Id big = g.constant(DType::U64, int64_t{-1}), bigger = g.constant(DType::U64, int64_t{-2});
  Bounds bounds(g);
  EXPECT_EQ(bounds[g.binary(Op::CmpLt, big, bigger)], (Interval{0, 1}));
  EXPECT_EQ(bounds[g.binary(Op::CmpEq, big, bigger)], (Interval{0, 1}));
}

TEST(Bounds, ContainEveryValueOfRandomExpressions) {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    Graph g;
    testing::RandomExpression make(g, random);
    const Id id = make.expression(4);
    Bounds bounds(g);
    testing::Evaluator evaluate(g);
    testing::for_all_values(g, make.ranges(), [&](const auto& values) {
      const int64_t value = evaluate(id, values);
      ASSERT_TRUE(bounds[id].contains(value)) << "round " << round << ": " << value << " outside ["
                                              << bounds[id].lo << ", " << bounds[id].hi << "]";
    });
  }
}

}  // namespace
}  // namespace plugrad
