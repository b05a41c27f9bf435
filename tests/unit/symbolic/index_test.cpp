#include <gtest/gtest.h>

#include "symbolic/symbolic.h"
#include "unit/symbolic/random_expression.h"

namespace plugrad {
namespace {

struct IndexTest : ::testing::Test {
  Graph g;
  Id i = make_range(g, 4, 0, AxisKind::Loop), j = make_range(g, 8, 1, AxisKind::Loop);
  Id k = make_range(g, 100, 2, AxisKind::Loop);
  Simplifier simplify{g};
  Id add(Id a, Id b) { return g.binary(Op::Add, a, b); }
  Id mul(Id a, int64_t c) { return g.binary(Op::Mul, a, g.index(c)); }
  Id div(Id a, int64_t c) { return g.binary(Op::FloorDiv, a, g.index(c)); }
  Id mod(Id a, int64_t c) { return g.binary(Op::FloorMod, a, g.index(c)); }
};

TEST_F(IndexTest, RowMajorOffsetsComeApart) {
  const Id flat = add(mul(i, 8), j);
  EXPECT_EQ(simplify(div(flat, 8)), i);
  EXPECT_EQ(simplify(mod(flat, 8)), j);
  EXPECT_EQ(simplify(div(flat, 32)), g.index(0));
  EXPECT_EQ(simplify(div(flat, 16)), simplify(div(i, 2)));
}

TEST_F(IndexTest, QuotientAndRemainderRecombine) {
  EXPECT_EQ(simplify(add(mod(k, 7), mul(div(k, 7), 7))), k);
  EXPECT_EQ(simplify(add(mod(k, 3), mul(mod(div(k, 3), 4), 3))), simplify(mod(k, 12)));
  EXPECT_EQ(simplify(add(mod(div(k, 3), 4), mul(div(k, 12), 4))), simplify(div(k, 3)));
}

TEST_F(IndexTest, NestedDivisionIsOne) {
  EXPECT_EQ(simplify(div(div(k, 3), 4)), simplify(div(k, 12)));
  EXPECT_EQ(simplify(mod(mod(k, 12), 4)), simplify(mod(k, 4)));
  EXPECT_EQ(simplify(div(mod(k, 12), 4)), simplify(mod(div(k, 4), 3)));
}

TEST_F(IndexTest, EqualSumsAreOneNode) {
  EXPECT_EQ(simplify(add(add(i, k), j)), simplify(add(add(j, i), k)));
  EXPECT_EQ(simplify(add(add(i, j), mul(i, -1))), j);
}

// (28*i + j + 27) % 28 with j < 8 wraps, so that the modulus must remain.
TEST_F(IndexTest, ModulusThatWrapsStays) {
  const Id id = simplify(mod(add(add(mul(i, 28), j), g.index(27)), 28));
  EXPECT_EQ(g[id].op, Op::FloorMod);
}

// Wrap-around: (x * 4) // 4 is not x for every i32.
TEST_F(IndexTest, StoredIntegersMayWrap) {
  const Id param = g.add(Op::Param, DType::I32, {}, 0);
  const Id x = g.add(Op::Load, DType::I32, {param, i});
  const Id four = g.constant(DType::I32, int64_t{4});
  const Id id = g.binary(Op::FloorDiv, g.binary(Op::Mul, x, four), four);
  EXPECT_EQ(simplify(id), id);
}

void expect_equal_everywhere(Graph& g, const std::vector<Id>& ranges, Id before, Id after,
                             int round) {
  testing::Evaluator evaluate(g);
  testing::for_all_values(g, ranges, [&](const auto& values) {
    ASSERT_EQ(evaluate(before, values), evaluate(after, values)) << "round " << round;
  });
}

TEST(Simplifier, KeepsTheValueOfRandomExpressions) {
  std::mt19937 random(11);
  for (int round = 0; round < 1500; ++round) {
    Graph g;
    testing::RandomExpression make(g, random);
    const Id before = round % 3 ? make.expression(4) : make.condition(3);
    Simplifier simplify(g);
    const Id after = simplify(before);
    expect_equal_everywhere(g, make.ranges(), before, after, round);
    ASSERT_EQ(simplify(after), after);
    ASSERT_FALSE(HasFatalFailure());
  }
}

}  // namespace
}  // namespace plugrad
