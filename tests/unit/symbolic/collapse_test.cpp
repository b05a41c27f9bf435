#include <gtest/gtest.h>

#include "ir/kernel_ast.h"
#include "ir/text/printer.h"
#include "ir/uop.h"
#include "symbolic/symbolic.h"
#include "unit/symbolic/evaluate.h"

namespace plugrad {
namespace {

struct CollapseTest : ::testing::Test {
  Graph g;
  UOp i = uop_range(g, 10, 0), j = uop_range(g, 64, 1), r = uop_range(g, 1000, 2, AxisKind::Reduce);
  UOp index_param{&g, make_param(g, DType::I32, {1, 10, 1})},
      table{&g, make_param(g, DType::F32, {2, 64000, 1})};
  UOp load(UOp param, UOp at) { return {&g, g.add(Op::Load, param.dtype(), {param, at})}; }
  UOp index_constant(int64_t value) { return {&g, g.index(value)}; }
  UOp f32(double value) { return uop_constant(g, DType::F32, value); }
  UOp i32(int64_t value) { return uop_constant(g, DType::I32, value); }
  UOp sum(UOp value) { return reduce(Op::Add, value, {r}); }
  std::string collapsed(UOp root) {
    return print(g, collapse_reduces(g, root), Numbering::FromZero);
  }
  bool has_reduce(UOp root) { return collapsed(root).find("reduce") != std::string::npos; }
};

TEST_F(CollapseTest, IntegersThatStandStillAreMultiplied) {
  const UOp x = load(index_param, i);
  EXPECT_EQ(collapse_reduces(g, sum(x)), x * 1000);
  EXPECT_EQ(collapse_reduces(g, sum(i32(3))), i32(3000));
}

// 0.1f added 1000 times is not 0.1f * 1000; 0.5f is exact.
TEST_F(CollapseTest, FloatsOnlyWhereExact) {
  EXPECT_TRUE(has_reduce(sum(f32(0.1))));
  EXPECT_EQ(collapse_reduces(g, sum(f32(0.5))), f32(500));
  EXPECT_EQ(collapse_reduces(g, sum(f32(0.1)), RuleSet::Fast),
            g.constant(DType::F32, static_cast<double>(0.1f * 1000.0f)));
}

TEST_F(CollapseTest, MaximumOfWhatStandsStill) {
  const UOp x = load(table, i);
  EXPECT_EQ(collapse_reduces(g, reduce(Op::Max, x, {r})), x);
}

// arange: the number of r at or below i.
TEST_F(CollapseTest, CountingComparisonsIsArange) {
  const UOp counted = sum(where(less(r, i + 1), i32(1), i32(0)));
  EXPECT_EQ(collapse_reduces(g, counted), (i + 1).cast(DType::I32));
  const UOp later = sum(where(less(i, r), i32(2), i32(0)));
  EXPECT_EQ(collapse_reduces(g, later),
            Simplifier(g)((index_constant(999) - i).cast(DType::I32) * 2));
  EXPECT_EQ(collapse_reduces(g, sum(where(less(r, i + 1), f32(1), f32(0)))),
            (i + 1).cast(DType::F32));
}

TEST_F(CollapseTest, ClampedCountsMatchTheLoop) {
  const UOp s = uop_range(g, 7, 3, AxisKind::Reduce);
  const UOp conditions[] = {less(s, i - 2),
                            less(i - 2, s),
                            less(s * 2, i + 1),
                            less(s, i) & less(i - 3, s),
                            equal(s, i - 2),
                            not_equal(s, i),
                            less(i, s * 3) & less(s, index_constant(5))};
  for (const UOp condition : conditions) {
    const UOp value = where(condition, i32(5), i32(0)), other = where(condition, i32(2), i32(7));
    for (const UOp body : {value, other}) {
      const Id closed = collapse_reduces(g, reduce(Op::Add, body, {s}));
      ASSERT_EQ(print(g, closed).find("reduce"), std::string::npos) << print(g, condition);
      testing::Evaluator evaluate(g);
      for (int64_t at = 0; at < 10; ++at) {
        int64_t expected = 0;
        for (int64_t step = 0; step < 7; ++step) expected += evaluate(body, {{i, at}, {s, step}});
        EXPECT_EQ(evaluate(closed, {{i, at}}), expected) << at << "\n" << print(g, condition);
      }
    }
  }
}

// The table row is read at the index itself; an out-of-range index reads nothing.
TEST_F(CollapseTest, EmbeddingIsOneGatedLoad) {
  const UOp idx = load(index_param, i);
  const UOp row = load(table, r * 64 + j);
  const UOp picked = sum(where(equal(r.cast(DType::I32), idx), row, f32(0)));
  EXPECT_EQ(collapsed(picked),
            "%0 = const index 10\n"
            "%1 = range index %0 axis=0 kind=loop\n"
            "%2 = const index 64\n"
            "%3 = range index %2 axis=1 kind=loop\n"
            "%4 = param i32 [1, 0, 10, 1]\n"
            "%5 = param f32 [2, 0, 64000, 1]\n"
            "%6 = load i32 %4, %1 #0\n"
            "%7 = const f32 0\n"
            "%8 = cast index %6\n"
            "%9 = mul index %8, %2\n"
            "%10 = add index %3, %9\n"
            "%11 = const i32 1000\n"
            "%12 = cmplt bool %6, %11\n"
            "%13 = const i32 -1\n"
            "%14 = cmplt bool %13, %6\n"
            "%15 = and bool %12, %14\n"
            "%16 = load f32 %5, %10, %15, %7 #0\n"
            "%17 = add f32 %16, %7\n"
            "return %17\n");
}

TEST_F(CollapseTest, OneHotOfIntegersByProduct) {
  const UOp idx = load(index_param, i);
  const UOp values{&g, make_param(g, DType::I32, {3, 1000, 1})};
  const UOp hot = equal(idx, r.cast(DType::I32)).cast(DType::I32);
  EXPECT_FALSE(has_reduce(sum(hot * load(values, r))));
  const UOp floats = equal(idx, r.cast(DType::I32)).cast(DType::F32) * load(table, r);
  EXPECT_TRUE(has_reduce(sum(floats)));  // 0 * infinity would be NaN
  EXPECT_EQ(print(g, collapse_reduces(g, sum(floats), RuleSet::Fast)).find("reduce"),
            std::string::npos);
}

TEST_F(CollapseTest, PlainSumsStay) {
  EXPECT_TRUE(has_reduce(sum(load(table, r * 64 + i))));
  EXPECT_TRUE(has_reduce(sum(where(less(load(table, r), f32(0)), f32(1), f32(0)))));
}

}  // namespace
}  // namespace plugrad
