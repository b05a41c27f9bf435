// The rewrite driver's services to pass tables: contexts, op sets, the original node, rebuilding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/uop.h"
#include "plugrad/error.h"
#include "rewrite/print_rule.h"
#include "rewrite/rewrite.h"

namespace plugrad {
namespace {
using namespace rules;

struct Counter {
  int count = 0;
  Id before = kNoId;
};

Id count(Graph& g, const Match& m) {
  auto& counter = m.context<Counter>();
  ++counter.count;
  counter.before = m.before;
  return g.unary(Op::Neg, m.root);
}

bool is_first(const Graph&, const Match& m) {
  return m.context<Counter>().count == 0;
}

struct DriverTest : ::testing::Test {
  Graph g;
  UOp a{&g, g.add(Op::Param, DType::I32, {}, g.list({0, 0, 1, 1}))};
  UOp b{&g, g.add(Op::Param, DType::I32, {}, g.list({1, 0, 1, 1}))};
};

TEST_F(DriverTest, ContextsAreOfOneType) {
  constexpr Rule kRules[] = {rule("count", x + y, code<count>, when(check<is_first>))};
  Counter counter;
  EXPECT_EQ(rewrite(g, a + b, kRules, {.context = &counter}), -(a + b));
  EXPECT_EQ(counter.count, 1);
  int other = 0;
  EXPECT_THROW(rewrite(g, a + b, kRules, {.context = &other}), Error);
  EXPECT_THROW(rewrite(g, a + b, kRules), Error);
}

TEST_F(DriverTest, APassSeesEachNodeOnceAndWhatItWas) {
  constexpr Rule kRules[] = {rule("count", x + y, code<count>), rule("twice", x * 2, x + x)};
  Counter counter;
  const Id sum = (a * 2) + b;
  const Id to = rewrite(g, sum, kRules, {.context = &counter});
  EXPECT_EQ(to, -((a + a) + b));
  EXPECT_EQ(counter.count, 1);
  EXPECT_EQ(counter.before, sum);
}

TEST_F(DriverTest, SetsOfOps) {
  constexpr Rule kRules[] = {
      rule("either", one_of(set_of({Op::Add, Op::Mul}), x, y), x),
      rule("any", of_class(one_of(set_of({Op::Max, Op::Sub})), kI32Class), 7),
  };
  EXPECT_EQ(rewrite(g, a + b, kRules), a.id);
  EXPECT_EQ(rewrite(g, a * b, kRules), a.id);
  EXPECT_EQ(rewrite(g, a - b, kRules), g.constant(DType::I32, int64_t{7}));
  const Id wide = g.binary(Op::Sub, g.cast(a, DType::I64), g.cast(b, DType::I64));
  EXPECT_EQ(rewrite(g, wide, kRules), wide);
}

TEST_F(DriverTest, CastsOnRightSidesMaySayTheirDtype) {
  constexpr Rule kRules[] = {rule("wide", x - y, cast(cast_to(x, DType::I64)))};
  EXPECT_EQ(rewrite(g, a - b, kRules), g.cast(g.cast(a, DType::I64), DType::I32));
}

TEST_F(DriverTest, OperandsAsWritten) {
  static constexpr Rule kRules[] = {rule("left", x + y, x)};
  const RuleTable table(kRules, Operands::AsWritten);
  Match m;
  ASSERT_NE(table.find(g, b + a, nullptr, m), nullptr);
  EXPECT_EQ(m[x], a.id);
  EXPECT_EQ(m[y], b.id);
  EXPECT_EQ(table.find(g, a * b, nullptr, m), nullptr);
}

Id negated(Graph& g, Id id, std::span<const Id> sources, RuleContext) {
  const Id made = g.with_sources(id, sources);
  return g[id].op == Op::Param ? g.unary(Op::Neg, made) : made;
}

TEST_F(DriverTest, NodesMayBeRebuiltAnotherWay) {
  constexpr Rule kRules[] = {rule("double", x * 2, x + x)};
  EXPECT_EQ(rewrite(g, a * 2, kRules, {.rebuild = negated}), (-a) + (-a));
}

TEST_F(DriverTest, OneNodeAlone) {
  static constexpr Rule kRules[] = {rule("one", x * 1, x), rule("double", x * 2, (x + x) * 1)};
  const RuleTable table(kRules);
  Rewriter rewriter(g, table, {.fixpoint = true});
  EXPECT_EQ(rewriter.at((a * 1) * 2), (a * 1) + (a * 1));
  EXPECT_EQ(rewriter.result(a), kNoId);
  rewriter(a * 1);
  EXPECT_EQ(rewriter.result(a * 1), a.id);
}

TEST_F(DriverTest, RulesPrintAsTheyAreWritten) {
  constexpr Rule kRule = rule("sum", as(w, (x + c0) * -1), code<count>, when(0 < c0));
  EXPECT_EQ(to_string(kRule.left), "w = (x + c0) * -1");
  EXPECT_EQ(right_side(kRule), "count");
  EXPECT_EQ(condition(kRule), "0 < c0");
  EXPECT_EQ(condition(rule("f", x + y, x, when(check<is_first>))), "is_first");
  EXPECT_EQ(to_string(of_class(max(x, 0.0), kRealClass)), "[real] max(x, 0.0)");
}

}  // namespace
}  // namespace plugrad
