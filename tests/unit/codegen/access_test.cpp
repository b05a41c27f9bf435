// may_repeat: ranges along which elements may be computed and stored twice.
#include "codegen/analysis/access.h"

#include <gtest/gtest.h>

#include "kernels.h"

namespace plugrad::test {
namespace {

// Tests the range with this axis number.
bool may_repeat(const Ast& ast, uint32_t axis) {
  const Graph& g = ast.graph;
  codegen::OpenRanges open(g);
  for (Id range : codegen::nodes_of(g, ast.sink, Op::Range))
    if (range_axis(g[range]) == axis)
      return codegen::may_repeat(g, open, g.sources(ast.sink), range);
  throw std::invalid_argument("no such axis");
}

TEST(MayRepeat, SumsDo) {
  EXPECT_TRUE(may_repeat(matmul(8, 28, 4), 1));
  EXPECT_TRUE(may_repeat(matmul(8, 28, 4), 0));
}

// The operands may share a buffer with the result.
TEST(MayRepeat, WhatIsComputedElementByElementDoesNot) {
  EXPECT_FALSE(may_repeat(add(28), 0));
}

// out[i] = x[i] + sum over k of y[i, k]; x may share memory with out.
Ast residual(uint32_t slot_of_x) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 28, 0, AxisKind::Loop), k = make_range(g, 4, 1, AxisKind::Reduce);
  const Id x = load(g, param(g, slot_of_x, 28, slot_of_x == 0), i);
  const Id y = load(g, param(g, 1, 112, false), affine(g, i, 4, k));
  store(ast, param(g, 0, 28, true), i, g.binary(Op::Add, x, reduce(g, Op::Add, y, {k})));
  return ast;
}

TEST(MayRepeat, SumsThatAreAddedToWhatLiesThereDoNot) {
  EXPECT_FALSE(may_repeat(residual(0), 0));
  EXPECT_FALSE(may_repeat(residual(2), 0));
}

// out[i] = sum over k of out[k] * y[i]
TEST(MayRepeat, SumsOfWhatIsStoredDoNot) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 28, 0, AxisKind::Loop), k = make_range(g, 28, 1, AxisKind::Reduce);
  const Id out = param(g, 0, 28, true);
  const Id y = load(g, param(g, 1, 28, false), i);
  store(ast, out, i, reduce(g, Op::Add, g.binary(Op::Mul, load(g, out, k), y), {k}));
  EXPECT_FALSE(may_repeat(ast, 0));
}

}  // namespace
}  // namespace plugrad::test
