// Simplification of conditions drops only clauses that other clauses imply.
#include <gtest/gtest.h>

#include "ir/kernel_ast.h"
#include "plugrad/plugin_api/kernel_ir.h"
#include "symbolic/symbolic.h"
#include "unit/symbolic/random_expression.h"

namespace plugrad {
namespace {

struct ValidityTest : ::testing::Test {
  Graph g;
  Id i = make_range(g, 8, 0, AxisKind::Loop), j = make_range(g, 100, 1, AxisKind::Loop),
     k = make_range(g, 4, 2, AxisKind::Loop);
  Simplifier simplify{g};
  Id less(Id a, int64_t b) { return g.binary(Op::CmpLt, a, g.index(b)); }
  Id more(Id a, int64_t b) { return g.binary(Op::CmpLt, g.index(b), a); }
  Id both(Id a, Id b) { return g.binary(Op::And, a, b); }
  Id add(Id a, Id b) { return g.binary(Op::Add, a, b); }
  Id load(Id gate, double other = 0) {
    const Id param = make_param(g, DType::F32, {1, 100, PGR_PARAM_READ});
    return g.add(Op::Load, DType::F32, {param, j, gate, g.constant(DType::F32, other)});
  }
};

TEST_F(ValidityTest, WeakerBoundsGo) {
  EXPECT_EQ(simplify(both(both(more(j, 4), less(j, 25)), both(more(j, 2), less(j, 27)))),
            simplify(both(more(j, 4), less(j, 25))));
}

TEST_F(ValidityTest, SumsBoundedByTheirTermsGo) {
  EXPECT_EQ(simplify(both(both(less(j, 20), less(i, 6)), less(add(j, k), 23))),
            simplify(both(less(j, 20), less(i, 6))));
  const Id needed = both(both(less(j, 20), less(i, 6)), less(add(j, k), 22));
  EXPECT_NE(simplify(needed), simplify(both(less(j, 20), less(i, 6))));
}

TEST_F(ValidityTest, ContradictionsAreFalse) {
  EXPECT_EQ(simplify(both(less(j, 20), more(j, 19))), g.constant(DType::Bool, int64_t{0}));
  EXPECT_EQ(simplify(both(both(less(j, 20), less(i, 3)), more(add(j, k), 30))),
            g.constant(DType::Bool, int64_t{0}));
}

TEST_F(ValidityTest, AChoiceThatRepeatsTheGateGoes) {
  const Id gate = both(less(j, 20), more(j, 4)), zero = g.constant(DType::F32, 0.0);
  const Id value = g.binary(Op::Max, load(gate), zero);
  EXPECT_EQ(simplify(g.where(less(j, 20), value, zero)), simplify(value));
  const Id plus_one = g.binary(Op::Add, load(gate), g.constant(DType::F32, 1.0));
  EXPECT_EQ(g[simplify(g.where(gate, plus_one, zero))].op, Op::Where);
  const Id negated =
      g.binary(Op::Mul, load(gate), g.constant(DType::F32, -1.0));  // -0 if the gate is closed
  EXPECT_EQ(g[simplify(g.where(gate, negated, zero))].op, Op::Where);
  EXPECT_EQ(g[simplify(g.where(less(j, 10), value, zero))].op, Op::Where);
}

TEST_F(ValidityTest, KnownGatesGo) {
  EXPECT_EQ(g.sources(simplify(load(less(j, 100)))).size(), 2u);
  EXPECT_EQ(simplify(load(less(j, 0), 3.5)), g.constant(DType::F32, 3.5));
}

TEST_F(ValidityTest, RandomConjunctionsKeepTheirValue) {
  std::mt19937 random(3);
  const auto pick = [&](int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
  };
  const std::vector<Id> ranges = {i, k, make_range(g, 5, 3, AxisKind::Loop)};
  for (int round = 0; round < 400; ++round) {
    Id all = kNoId;
    for (int64_t n = pick(2, 5); n > 0; --n) {
      Id sum = g.index(pick(-6, 6));
      for (int64_t t = pick(1, 2); t > 0; --t)
        sum = add(sum,
                  g.binary(Op::Mul, ranges[static_cast<size_t>(pick(0, 2))], g.index(pick(-3, 3))));
      const Id clause = pick(0, 1) == 0 ? less(sum, pick(-4, 12)) : more(sum, pick(-4, 12));
      all = all == kNoId ? clause : both(all, clause);
    }
    const Id after = simplify(all);
    testing::Evaluator evaluate(g);
    testing::for_all_values(g, ranges, [&](const auto& values) {
      ASSERT_EQ(evaluate(all, values), evaluate(after, values));
    });
    if (HasFailure()) return;
  }
}

// A Reduce of several values, as in expanded kernels, keeps constant values.
TEST_F(ValidityTest, ConstantValuesOfAReductionAreNoRanges) {
  const Id r = make_range(g, 3, 4, AxisKind::Reduce), two = g.constant(DType::F32, 2.0);
  const auto reduce = [&](std::vector<Id> sources) {
    return g.add(Op::Reduce, DType::F32, sources, g.list({static_cast<int64_t>(Op::Add)}));
  };
  EXPECT_EQ(g.sources(simplify(reduce({two, two, two, r}))).size(), 4u);
  EXPECT_EQ(simplify(reduce({two, two, g.index(0)})), g.constant(DType::F32, 4.0));
}

}  // namespace
}  // namespace plugrad
