// The step of a trace, and the roles of its inputs.
#include "scale/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "plugrad/error.h"
#include "steps.h"

namespace plugrad::tools::scale {
namespace {

using testing::HasSubstr;

std::string program_error(const std::vector<TracedPlan>& plans, const ProgramOptions& options) {
  try {
    program_of(plans, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::User) << error.what();
    return error.what();
  }
  return "no error";
}

TEST(StepOfATrace, RolesFollowFromTheGraph) {
  const Program program = linear_program(8, 4, 6);
  ASSERT_EQ(program.leaves.size(), 3u);
  EXPECT_EQ(program.plan, 7);
  EXPECT_EQ(program.batch, 8);
  EXPECT_EQ(program.leaves[0].role, Role::Batch);
  EXPECT_EQ(program.leaves[1].role, Role::Parameter);
  EXPECT_EQ(program.leaves[1].root, 1u);
  EXPECT_EQ(program.leaves[2].role, Role::State);
  EXPECT_EQ(program.leaves[2].parameter, 1u);
  EXPECT_EQ(program.leaves[2].bytes(), 96u);
  ASSERT_EQ(program.groups.size(), 1u);
  EXPECT_EQ(program.groups[0].leaves, std::vector<size_t>{1});
  EXPECT_EQ(program.to_state.size(), 2u);  // the gradient and the parameter
}

TEST(StepOfATrace, IndicesMayHaveTheBatchInAMergedDimension) {
  // 16 sequences of 7 indices, a target for each sequence, and the key of random numbers.
  const TracedPlan plan{1,
                        "%0 = buffer i32 [0, 1, 112]\n%1 = buffer f32 [1, 1, 112]\n"
                        "%2 = cast f32 %0\n%3 = mul f32 %2, %1\n%4 = reduce f32 %3 [add, 0]\n"
                        "%5 = buffer i32 [2, 1, 16]\n%6 = cast f32 %5\n"
                        "%7 = reduce f32 %6 [add, 0]\n%8 = add f32 %4, %7\n"
                        "%9 = buffer u32 [3, 1, 2]\n%10 = cast f32 %9\n"
                        "%11 = reduce f32 %10 [add, 0]\n%12 = add f32 %8, %11\n"
                        "%13 = add f32 %1, %2\nreturn %12, %13\n",
                        {-1, 1},
                        {}};
  const Program program = program_of({plan}, {});
  EXPECT_EQ(program.batch, 16);
  EXPECT_EQ(program.leaves[0].role, Role::Batch);
  EXPECT_EQ(program.leaves[1].role, Role::Parameter);
  EXPECT_EQ(program.leaves[2].role, Role::Batch);
  EXPECT_EQ(program.leaves[3].role, Role::Other);
}

TEST(StepOfATrace, TheLargestPlanThatAssignsIsTheStep) {
  TracedPlan small{1, "%0 = buffer f32 [0, 1, 2]\n%1 = add f32 %0, %0\nreturn %1\n", {0}, {}};
  TracedPlan reads = linear_step(8, 4, 6);
  reads.id = 9;
  reads.replaces = {-1, -1, -1};
  reads.recorded += "\n";
  EXPECT_EQ(program_of({small, linear_step(8, 4, 6), reads}, {}).plan, 7);
  EXPECT_EQ(program_of({small, linear_step(8, 4, 6), reads}, {.plan = 1}).plan, 1);
}

TEST(StepOfATrace, WrongTracesAndOptionsAreRefused) {
  TracedPlan reads = linear_step(8, 4, 6);
  reads.replaces = {-1, -1, -1};
  EXPECT_THAT(program_error({reads}, {}), HasSubstr("no plan of the trace assigns"));
  EXPECT_THAT(program_error({linear_step(8, 4, 6)}, {.plan = 3}), HasSubstr("no plan 3; it has 7"));
  EXPECT_THAT(program_error({linear_step(8, 4, 6)}, {.batch = 5}), HasSubstr("--batch 5"));
  EXPECT_THAT(program_error({linear_step(8, 4, 6)}, {.roles = {{3, Role::Other}}}),
              HasSubstr("no input 3; it has 3"));
  const TracedPlan two{1,
                       "%0 = buffer f32 [0, 1, 2]\n%1 = buffer f32 [1, 2, 2]\n%2 = copy f32 %1 #1\n"
                       "%3 = add f32 %0, %2\nreturn %3\n",
                       {0},
                       {}};
  EXPECT_THAT(program_error({two}, {}), HasSubstr("several devices"));
}

TEST(StepOfATrace, ARoleCanBeGiven) {
  const Program program = program_of({linear_step(8, 4, 6)}, {.roles = {{0, Role::Other}}});
  EXPECT_EQ(program.leaves[0].role, Role::Other);
}

}  // namespace
}  // namespace plugrad::tools::scale
