// The marks on values worth keeping, and that the marks distinguish equal functions from others.
#include <algorithm>
#include <map>

#include "check.h"
#include "ir/kernel_ast.h"
#include "ir/range.h"

namespace plugrad::test {
namespace {

struct Marks {
  std::map<int64_t, size_t> values;  // number of occurrences of each value
  size_t in_blocks = 0;
};

/// The marks of the one kernel that computes `root`, whose values are checked.
Marks marks_of(Tensors& t, Id root, const schedule::Options& options = {}) {
  const schedule::Plan plan = check(t, {root}, options);
  EXPECT_EQ(plan.asts.size(), 1u);
  const KernelAst& ast = *plan.asts[0];
  Marks out;
  Reachable reachable;
  for (Id id : reachable.from(ast.graph, std::span(&ast.sink, 1))) {
    if (ast.graph[id].op != Op::Keep) continue;
    ++out.values[keep_mark(ast.graph, id).number];
    out.in_blocks += keep_mark(ast.graph, id).in_blocks;
  }
  return out;
}

Id exponentials(Tensors& t, Id x) {
  return t.g.unary(Op::Exp2, x);
}

TEST(LocalBuffers, ExponentialsOfASoftmaxAreOneFunctionOfTwoLoops) {
  Tensors t;
  const Marks marks = marks_of(t, t.softmax(t.buffer({6, 10})));
  EXPECT_EQ(marks.values, (std::map<int64_t, size_t>{{0, 2}}));
  EXPECT_EQ(marks.in_blocks, 0u);
}

TEST(LocalBuffers, RowsOfSeveralAxesAreOneFunctionToo) {
  Tensors t;
  const Id x = exponentials(t, t.buffer({6, 4, 5}));
  const Marks marks = marks_of(t, t.div(x, t.sum(x, {1, 2})));
  EXPECT_EQ(marks.values, (std::map<int64_t, size_t>{{0, 2}}));
}

TEST(LocalBuffers, DifferencesFromTheMeanAreComputedAgain) {
  Tensors t;
  const Id x = t.buffer({8, 16}), centred = t.sub(x, t.mean(x, {1}));
  const Id scale = t.g.unary(Op::Recip, t.mean(t.mul(centred, centred), {1}));
  EXPECT_TRUE(marks_of(t, t.mul(centred, scale)).values.empty());
}

TEST(LocalBuffers, OtherFunctionsAreNotTheSame) {
  Tensors t;
  const Id x = t.buffer({6, 10}), up = exponentials(t, x), down = exponentials(t, t.times(x, -1));
  EXPECT_TRUE(marks_of(t, t.div(up, t.sum(down, {1}))).values.empty());
}

// The sum runs down a column of the same values, whose indices differ from those of the dividend.
TEST(LocalBuffers, ColumnsAreNotRows) {
  Tensors t;
  const Id x = exponentials(t, t.buffer({7, 7}));
  EXPECT_TRUE(marks_of(t, t.div(x, t.transpose(t.sum(x, {0})))).values.empty());
}

TEST(LocalBuffers, WeightsOfAttentionAreMadeInBlocks) {
  Tensors t;
  const Id q = t.buffer({2, 37, 4}), k = t.buffer({2, 37, 4}), v = t.buffer({2, 37, 3});
  const Id scores = t.times(t.matmul(q, t.transpose(k)), 0.5);
  const Marks marks =
      marks_of(t, t.matmul(t.softmax(scores), v), schedule::Options{.scratch_bytes = 1024});
  EXPECT_EQ(marks.in_blocks, 1u);
  EXPECT_EQ(std::ranges::count_if(marks.values, [](const auto& m) { return m.second == 1; }), 1);
}

}  // namespace
}  // namespace plugrad::test
