#include <gtest/gtest.h>

#include "ir/structural_hash.h"
#include "ir/uop.h"

namespace plugrad {
namespace {

Id example(Graph& g, int64_t factor, bool detour) {
  if (detour) g.index(77);  // other ids, the same structure
  const UOp i = uop_range(g, 8, 0), j = uop_range(g, 4, 1);
  return detour ? j + i * factor : i * factor + j;
}

TEST(StructuralHash, DoesNotDependOnIds) {
  Graph a, b;
  EXPECT_EQ(structural_hash(a, example(a, 3, false)), structural_hash(b, example(b, 3, true)));
  EXPECT_NE(structural_hash(a, example(a, 3, false)), structural_hash(a, example(a, 4, false)));
}

TEST(StructuralHash, SourcesThatDoNotCommuteKeepTheirOrder) {
  Graph g;
  const UOp i = uop_range(g, 8, 0), j = uop_range(g, 4, 1);
  EXPECT_NE(structural_hash(g, i / j), structural_hash(g, j / i));
  EXPECT_NE(structural_hash(g, uop_constant(g, DType::F32, 0.0)),
            structural_hash(g, uop_constant(g, DType::F32, -0.0)));
}

TEST(StructuralHash, NamedNodesCountAsTheirNumber) {
  Graph g;
  const Id a = g.add(Op::Buffer, DType::F32, {}, g.list({5, 1, 4}));
  const Id b = g.add(Op::Buffer, DType::F32, {}, g.list({6, 1, 4}));
  const auto hash = [&](Id buffer) {
    StructuralHash h(g);
    h.name(buffer, 0);
    return h(g.unary(Op::Neg, buffer));
  };
  EXPECT_EQ(hash(a), hash(b));
  EXPECT_NE(structural_hash(g, g.unary(Op::Neg, a)), structural_hash(g, g.unary(Op::Neg, b)));
}

TEST(StructuralHash, LongChains) {
  Graph g;
  Id chain = g.add(Op::Param, DType::F32, {}, g.list({0, 0, 4, 1}));
  for (int i = 0; i < 100'000; ++i) chain = g.unary(i % 2 ? Op::Neg : Op::Exp2, chain);
  EXPECT_NE(structural_hash(g, chain), structural_hash(g, g[chain].src[0]));
}

}  // namespace
}  // namespace plugrad
