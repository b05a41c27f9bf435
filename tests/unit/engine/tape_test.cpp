#include "engine/tape.h"

#include <gtest/gtest.h>

using namespace plugrad;
using engine::Tape;

namespace {

class TapeTest : public testing::Test {
 protected:
  Id leaf(DType dtype = DType::F32) {
    return g.add(Op::Buffer, dtype, {}, g.list({next_buffer++, 1, 4}));
  }
  Graph g;
  Tape tape;
  int64_t next_buffer = 1;
};

TEST_F(TapeTest, FollowsFloatsFromMarkedLeaves) {
  const Id weight = leaf(), data = leaf();
  tape.mark_leaf(weight);
  const Id product = g.binary(Op::Mul, weight, data);
  EXPECT_TRUE(tape.is_tracked(g, product));
  EXPECT_FALSE(tape.is_tracked(g, g.binary(Op::Mul, data, data)));
  EXPECT_FALSE(tape.is_tracked(g, g.binary(Op::CmpLt, weight, data))) << "bool carries no gradient";
  EXPECT_FALSE(tape.is_tracked(g, g.add(Op::Detach, DType::F32, {product})));
  EXPECT_TRUE(tape.is_tracked(g, g.cast(product, DType::F16)));
}

TEST_F(TapeTest, MarkingAnOldNodeReachesWhatWasBuiltOnIt) {
  const Id x = leaf();
  const Id y = g.binary(Op::Add, x, x);
  EXPECT_FALSE(tape.is_tracked(g, y));
  tape.mark_leaf(x);
  EXPECT_TRUE(tape.is_tracked(g, y));
  tape.unmark_leaf(x);
  EXPECT_FALSE(tape.is_tracked(g, y));
}

TEST_F(TapeTest, AnEndedNodeLeadsToNoEarlierLeaf) {
  const Id x = leaf(), other = leaf();
  tape.mark_leaf(x);
  const Id a = g.binary(Op::Mul, x, x), b = g.binary(Op::Add, x, other),
           both = g.binary(Op::Add, a, b);
  const std::vector<bool> none(g.size());
  tape.end(g, a, none);
  EXPECT_TRUE(tape.is_tracked(g, a)) << "x is a leaf still";
  tape.mark_earlier(x);
  EXPECT_FALSE(tape.is_tracked(g, a));
  EXPECT_TRUE(tape.is_tracked(g, b));
  EXPECT_TRUE(tape.is_tracked(g, both));
  tape.end(g, both, none);
  EXPECT_FALSE(tape.is_tracked(g, both));
  EXPECT_FALSE(tape.has_tracked_source(g, both));
  const Id moved[] = {0, 1, 3, 2, 4};
  tape = tape.renumbered(moved);
  tape.mark_earlier(x);
  EXPECT_FALSE(tape.is_tracked(g, both));
}

TEST_F(TapeTest, AMarkOnTheNodeItselfIsNoTrackedSource) {
  const Id x = leaf();
  const Id y = g.binary(Op::Add, x, x);
  tape.mark_leaf(y);
  EXPECT_TRUE(tape.is_tracked(g, y));
  EXPECT_FALSE(tape.has_tracked_source(g, y));
  tape.mark_leaf(x);
  EXPECT_TRUE(tape.has_tracked_source(g, y));
}

}  // namespace
