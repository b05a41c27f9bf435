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
