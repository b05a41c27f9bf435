#include "rewrite/rewrite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/uop.h"
#include "plugrad/error.h"

namespace plugrad {
namespace {
using namespace rules;

struct RewriteTest : ::testing::Test {
  Graph g;
  UOp a{&g, g.add(Op::Param, DType::I32, {}, g.list({0, 0, 1, 1}))};
  std::string error_of(std::span<const Rule> table, Id root, RewriteOptions options) {
    try {
      rewrite(g, root, table, options);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::Internal);
      return e.what();
    }
    return "";
  }
};

TEST_F(RewriteTest, FixpointRewritesItsResults) {
  constexpr Rule kRules[] = {rule("shrink", x + c0, x + (c0 - 1), when(0 < c0)),
                             rule("zero", x + 0, x)};
  EXPECT_EQ(rewrite(g, a + 5, kRules, {.fixpoint = true}), a.id);
  EXPECT_EQ(rewrite(g, a + 5, kRules), a + 4);
}

TEST_F(RewriteTest, ChildrenFirstSeesNewSources) {
  constexpr Rule kRules[] = {rule("neg", -x, x * -1), rule("square", x * -1, x * x)};
  EXPECT_EQ(rewrite(g, -(-a), kRules), (a * -1) * -1);
  EXPECT_EQ(rewrite(g, -a, kRules, {.fixpoint = true}), a * a);
}

TEST_F(RewriteTest, ParentsFirstSeesTheOriginal) {
  constexpr Rule kRules[] = {rule("pair", (x + 1) * 2, x), rule("one", x + 1, x + 7)};
  EXPECT_EQ(rewrite(g, (a + 1) * 2, kRules, {.order = Order::ParentsFirst}), a.id);
  EXPECT_EQ(rewrite(g, (a + 1) * 2, kRules), (a + 7) * 2);
}

TEST_F(RewriteTest, RulesThatUndoEachOtherAreNamed) {
  constexpr Rule kRules[] = {rule("there", x * 2, x + x), rule("back", x + x, x * 2)};
  for (Order order : {Order::ChildrenFirst, Order::ParentsFirst}) {
    const std::string message = error_of(kRules, a * 2, {.order = order, .fixpoint = true});
    EXPECT_THAT(message, ::testing::HasSubstr("back, there"));
    EXPECT_THAT(message, ::testing::HasSubstr("undo each other"));
  }
}

TEST_F(RewriteTest, RulesThatGrowForeverAreNamed) {
  constexpr Rule kRules[] = {rule("grow", x + c0, (x * 2) + (c0 + 1))};
  EXPECT_THAT(error_of(kRules, a + 1, {.fixpoint = true}),
              ::testing::HasSubstr("without an end; the last were of: grow"));
  constexpr Rule kWrap[] = {rule("wrap", -x, (-x) * 1)};
  EXPECT_THAT(error_of(kWrap, -a, {.fixpoint = true}), ::testing::HasSubstr("wrap"));
}

TEST_F(RewriteTest, AnotherDtypeIsAnErrorOfTheRule) {
  constexpr Rule kRules[] = {rule("wrong", x < y, x)};
  EXPECT_THAT(error_of(kRules, less(a, a + 1), {}), ::testing::HasSubstr("wrong turned bool"));
}

TEST_F(RewriteTest, LongChainsNeedNoRecursion) {
  constexpr Rule kRules[] = {rule("neg", -x, x * -1)};
  UOp chain = a;
  for (int i = 0; i < 100'000; ++i) chain = -chain;
  Id id = rewrite(g, chain, kRules, {.fixpoint = true});
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_EQ(g[id].op, Op::Mul);
    id = g[id].src[0];
  }
  EXPECT_EQ(id, a.id);
}

TEST_F(RewriteTest, MemoLastsBetweenRoots) {
  constexpr Rule kRules[] = {rule("neg", -x, x * -1)};
  const RuleTable table(kRules);
  Rewriter rewriter(g, table, {.fixpoint = true});
  rewriter((-a) + 1);
  const uint64_t before = rewriter.visits();
  rewriter((-a) + 2);
  EXPECT_LE(rewriter.visits() - before, 2u);
  EXPECT_EQ(rewriter.hits()[0], 1u);
}

TEST_F(RewriteTest, TraceRecordsRuleAndNodes) {
  constexpr Rule kRules[] = {rule("neg", -x, x * -1)};
  RewriteTrace trace;
  const UOp root = -a;
  {
    TraceScope scope(trace);
    rewrite(g, root, kRules);
  }
  rewrite(g, -(a + 1), kRules);
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].from, root.id);
  EXPECT_EQ(trace.events[0].to, a * -1);
  EXPECT_THAT(to_string(trace.events[0]),
              ::testing::MatchesRegex("neg \\(rewrite_test.cpp:[0-9]+\\): %[0-9]+ -> %[0-9]+"));
}

}  // namespace
}  // namespace plugrad
