#include "rewrite/rule_table.h"

#include <gtest/gtest.h>

#include "ir/uop.h"

namespace plugrad {
namespace {
using namespace rules;

struct RuleTableTest : ::testing::Test {
  Graph g;
  Id a = g.add(Op::Param, DType::I32, {}, g.list({0, 0, 1, 1})),
     b = g.add(Op::Param, DType::I32, {}, g.list({1, 0, 1, 1}));
  UOp ua{&g, a}, ub{&g, b};
  Id apply(std::span<const Rule> rules, Id id) {
    uint32_t rule;
    return RuleTable(rules).apply(g, id, nullptr, rule);
  }
};

TEST_F(RuleTableTest, BothOrdersOfCommutativeOps) {
  constexpr Rule kRules[] = {rule("factor", x * y + x, x * (y + 1))};
  EXPECT_EQ(apply(kRules, ua * ub + ua), ua * (ub + 1));
  EXPECT_EQ(apply(kRules, ub + ua * ub), ub * (ua + 1));
  EXPECT_EQ(apply(kRules, ua + ub), kNoMatch);
}

TEST_F(RuleTableTest, TheSameNameIsTheSameNode) {
  constexpr Rule kRules[] = {rule("self", x ^ x, 0)};
  EXPECT_EQ(apply(kRules, ua ^ ua), ua.constant(int64_t{0}));
  EXPECT_EQ(apply(kRules, ua ^ ub), kNoMatch);
}

TEST_F(RuleTableTest, GuardsSeeConstantsAndClasses) {
  constexpr Rule kRules[] = {
      rule("exact", (x * c0) / c1, x * (c0 / c1), when(is_int(x) && c1 != 0 && c0 % c1 == 0))};
  EXPECT_EQ(apply(kRules, (ua * 12) / 4), ua * 3);
  EXPECT_EQ(apply(kRules, (ua * 12) / 5), kNoMatch);
  EXPECT_EQ(apply(kRules, (ua * 12) / 0), kNoMatch);
}

// 1e8 + 3 + 4 is not 1e8 + 7 for floats; literals match by value, -0 is not 0.
TEST_F(RuleTableTest, ClassesAndSignedZeros) {
  constexpr Rule kRules[] = {rule("ints", (x + c0) + c1, x + (c0 + c1), when(is_int(x))),
                             rule("zero", x + -0.0, x)};
  const UOp f{&g, g.add(Op::Param, DType::F32, {}, g.list({2, 0, 1, 1}))};
  EXPECT_EQ(apply(kRules, (ua + 3) + 4), ua + 7);
  EXPECT_EQ(apply(kRules, (f + f.constant(3.0)) + f.constant(4.0)), kNoMatch);
  EXPECT_EQ(apply(kRules, f + f.constant(-0.0)), f.id);
  EXPECT_EQ(apply(kRules, f + f.constant(0.0)), kNoMatch);
}

TEST_F(RuleTableTest, FirstRuleThatAppliesWins) {
  constexpr Rule kTwo[] = {rule("first", x * 2, x + x), rule("second", x * c0, x)};
  EXPECT_EQ(apply(kTwo, ua * 2), ua + ua);
  EXPECT_EQ(apply(kTwo, ua * 3), a);
}

TEST_F(RuleTableTest, OpenNodesAllowMoreSources) {
  constexpr Rule kRules[] = {rule("sink", open_node(Op::Sink, x), [](Graph& graph, const Match& m) {
    return graph.add(Op::Sink, DType::Void, {m[x]});
  })};
  const Id sink = g.add(Op::Sink, DType::Void, {a, b});
  EXPECT_EQ(apply(kRules, sink), g.add(Op::Sink, DType::Void, {a}));
}

}  // namespace
}  // namespace plugrad
