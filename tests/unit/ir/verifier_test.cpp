#include "ir/verifier.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/kernel_ast.h"
#include "ir/text/parser.h"
#include "ir/uop.h"
#include "plugrad/error.h"

namespace plugrad {
namespace {

std::string complaint(std::string_view text, Spec spec) {
  Graph g;
  try {
    verify(g, parse(g, text), spec, "stage");
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Internal);
    return e.what();
  }
  return "";
}

TEST(Verifier, TensorGraphs) {
  EXPECT_EQ(complaint("%0 = buffer f32 [0, 1, 4]\n%1 = neg f32 %0", Spec::Tensor), "");
  EXPECT_THAT(complaint("%0 = buffer f32 [0, 1, 4]\n%1 = reshape f32 %0 [3]", Spec::Tensor),
              ::testing::HasSubstr(
                  "stage: a reshape keeps the number of elements: %1 = reshape f32 %0 [3]"));
  EXPECT_THAT(complaint("%0 = buffer f32 [0, 1, 4]\n%1 = buffer f32 [1, 1, 5]\n%2 = add f32 %0, %1",
                        Spec::Tensor),
              ::testing::HasSubstr("sources must have one shape"));
  EXPECT_THAT(complaint("%0 = buffer f32 [0, 1, 4]\n%1 = buffer i32 [1, 1, 4]\n%2 = add f32 %0, %1",
                        Spec::Tensor),
              ::testing::HasSubstr("one dtype"));
  EXPECT_THAT(complaint("%0 = const index 4\n%1 = range index %0 axis=0 kind=loop", Spec::Tensor),
              ::testing::HasSubstr("does not belong to this stage"));
}

TEST(Verifier, BoundsOfARange) {
  const auto bounded = [](std::string_view bounds) {
    return complaint(
        fmt::format(
            "%0 = const index 4\n%1 = const index -1\n%2 = const index 5\n%3 = const i32 1\n"
            "%4 = range index %0, {} axis=0 kind=loop",
            bounds),
        Spec::Kernel);
  };
  EXPECT_EQ(bounded("%0, %0"), "");
  EXPECT_THAT(bounded("%0"), ::testing::HasSubstr("a bounded range has a begin and an end"));
  EXPECT_THAT(bounded("%3, %3"), ::testing::HasSubstr("the bounds have the range's dtype"));
  EXPECT_THAT(bounded("%1, %0"), ::testing::HasSubstr("the range begins below 0"));
  EXPECT_THAT(bounded("%0, %2"), ::testing::HasSubstr("the range ends behind its size"));
}

TEST(Verifier, ProgramsHaveNoWeakDtypes) {
  EXPECT_THAT(complaint("%0 = const index 4", Spec::Program),
              ::testing::HasSubstr("weak dtypes must be gone"));
  EXPECT_EQ(complaint("%0 = const i32 4", Spec::Program), "");
}

struct KernelAstTest : ::testing::Test {
  Graph g;
  Id in = make_param(g, DType::F32, {1, 32, 1}), out = make_param(g, DType::F32, {0, 4, 2});
  UOp i = uop_range(g, 4, 0), r = uop_range(g, 8, 1, AxisKind::Reduce);
  UOp load{&g, g.add(Op::Load, DType::F32, {in, i * 8 + r})};
  Id kernel(UOp value) {
    return g.add(Op::Sink, DType::Void, {g.add(Op::Store, DType::Void, {out, i, value})});
  }
};

TEST_F(KernelAstTest, SumOfRowsIsSound) {
  verify_kernel_ast(g, kernel(reduce(Op::Add, load, {r})));
}

TEST_F(KernelAstTest, OpenReduceRangeIsRejected) {
  EXPECT_THROW(verify_kernel_ast(g, kernel(load)), Error);
}

TEST_F(KernelAstTest, ReducesSideBySideShareLoops) {
  verify_kernel_ast(g, kernel(reduce(Op::Add, load, {r}) + reduce(Op::Max, load, {r})));
}

TEST_F(KernelAstTest, RangeClosedTwiceIsRejected) {
  EXPECT_THROW(
      verify_kernel_ast(g, kernel(reduce(Op::Add, load + reduce(Op::Max, load, {r}), {r}))), Error);
}

}  // namespace
}  // namespace plugrad
