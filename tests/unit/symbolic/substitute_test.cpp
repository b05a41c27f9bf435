#include <gtest/gtest.h>

#include "ir/range.h"
#include "symbolic/symbolic.h"

namespace plugrad {
namespace {

TEST(Substitute, RebuildsOnlyWhatChanges) {
  Graph g;
  const Id i = make_range(g, 4, 0, AxisKind::Loop), j = make_range(g, 8, 1, AxisKind::Loop);
  const Id untouched = g.binary(Op::Mul, j, g.index(3)), sum = g.binary(Op::Add, i, untouched);
  EXPECT_EQ(substitute(g, untouched, {{i, g.index(2)}}), untouched);
  const Id replaced = substitute(g, sum, {{i, g.index(2)}});
  EXPECT_EQ(replaced, g.binary(Op::Add, g.index(2), untouched));
}

TEST(Substitute, ReplacementsAreNotSearchedAgain) {
  Graph g;
  const Id i = make_range(g, 4, 0, AxisKind::Loop), next = g.binary(Op::Add, i, g.index(1));
  EXPECT_EQ(substitute(g, i, {{i, next}}), next);
}

TEST(Substitute, LongChainsNeedNoRecursion) {
  Graph g;
  const Id i = make_range(g, 4, 0, AxisKind::Loop);
  Id chain = i;
  for (int64_t n = 0; n < 100'000; ++n) chain = g.binary(Op::Max, chain, g.index(n));
  EXPECT_FALSE(depends_on(g, substitute(g, chain, {{i, g.index(0)}}), i));
}

TEST(RangeSets, ReduceClosesItsRanges) {
  Graph g;
  const Id i = make_range(g, 4, 0, AxisKind::Loop), r = make_range(g, 8, 1, AxisKind::Reduce);
  const Id body = g.binary(Op::Add, i, r);
  const Id sum =
      g.add(Op::Reduce, DType::Index, {body, r}, g.list({static_cast<int64_t>(Op::Add)}));
  RangeSets open(g);
  EXPECT_TRUE(open.depends(body, r));
  EXPECT_FALSE(open.depends(sum, r));
  EXPECT_TRUE(open.depends(sum, i));
  EXPECT_EQ(open.set_of(sum), open.set_of(i));
  EXPECT_EQ(open.set_of(g.index(3)), 0u);
}

}  // namespace
}  // namespace plugrad
