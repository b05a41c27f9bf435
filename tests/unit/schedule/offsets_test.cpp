// Kernels that differ in constant load offsets or in the number of parameters share one program.
#include "check.h"

namespace plugrad::test {
namespace {

schedule::Options one_value_a_kernel() {
  schedule::Options options;
  options.share_kernels = false;
  return options;
}
const schedule::Options kAlone = one_value_a_kernel();

/// Row `at` of a matrix.
Id offset_row(Tensors& t, Id x, int64_t at) {
  const int64_t width = t.shape(x)[1];
  return t.reshape(t.shrink(x, {at, at + 1, 0, width}), {width});
}

/// Every step stores relu(row + state), which the next step reads.
Id recurrence(Tensors& t, Id x, int64_t rows) {
  Id state = t.buffer({t.shape(x)[1]});
  for (int64_t i = 0; i < rows; ++i)
    state = t.contiguous(t.relu(t.add(offset_row(t, x, i), state)));
  return state;
}

std::vector<std::vector<uint64_t>> scalars_of(const schedule::Plan& plan) {
  std::vector<std::vector<uint64_t>> out;
  for (const auto& step : plan.steps) out.push_back(step.scalars);
  return out;
}

TEST(Offsets, StepsOverRowsAreOneProgram) {
  for (int64_t rows : {4, 7, 64}) {
    Tensors t;
    const Id x = t.buffer({rows, 6});
    const auto plan = check(t, {recurrence(t, x, rows)}, kAlone);
    EXPECT_EQ(kernel_count(plan), static_cast<size_t>(rows));
    EXPECT_EQ(plan.asts.size(), 1u);
    for (int64_t i = 0; i < rows; ++i)
      EXPECT_EQ(plan.steps.at(static_cast<size_t>(i)).scalars,
                std::vector<uint64_t>{static_cast<uint64_t>(i)});
  }
}

TEST(Offsets, FewKernelsKeepTheirConstants) {
  Tensors t;
  const Id x = t.buffer({3, 6});
  const auto plan = check(t, {recurrence(t, x, 3)}, kAlone);
  EXPECT_EQ(plan.asts.size(), 3u);
  EXPECT_EQ(scalars_of(plan), std::vector<std::vector<uint64_t>>(3));
}

TEST(Offsets, OffsetsThatRunAgainstEachOtherShareANumber) {
  Tensors t;
  const int64_t rows = 6;
  const Id x = t.buffer({rows, 4}), y = t.buffer({rows, 2, 4});
  std::vector<Id> roots;
  for (int64_t i = 0; i < rows; ++i) {
    const int64_t back = rows - 1 - i;
    const Id other = t.reshape(t.shrink(y, {back, back + 1, 1, 2, 0, 4}), {4});
    roots.push_back(t.sub(offset_row(t, x, i), other));
  }
  const auto plan = check(t, roots, kAlone);
  EXPECT_EQ(plan.asts.size(), 1u);
  for (const auto& step : plan.steps) EXPECT_EQ(step.scalars.size(), 1u);
}

TEST(Offsets, OffsetsWithoutAPatternAreNumbersOfTheirOwn) {
  Tensors t;
  const Id x = t.buffer({9, 4}), y = t.buffer({9, 4});
  std::vector<Id> roots;
  for (const auto& [a, b] : {std::pair{0, 5}, {2, 1}, {8, 3}, {3, 3}, {1, 8}})
    roots.push_back(t.sub(offset_row(t, x, a), offset_row(t, y, b)));
  const auto plan = check(t, roots, kAlone);
  EXPECT_EQ(plan.asts.size(), 1u);
  EXPECT_EQ(plan.steps[0].scalars.size(), 2u);
  schedule::Options few = kAlone;
  few.max_params = 4;  // three buffers and one number
  EXPECT_EQ(check(t, roots, few).asts.size(), 5u);
}

/// A row read twice is one load; two rows are two loads, and a different program.
TEST(Offsets, LoadsThatAreOneStayOne) {
  Tensors t;
  const Id x = t.buffer({12, 4});
  std::vector<Id> roots;
  for (int64_t i = 0; i < 5; ++i) {
    roots.push_back(t.sub(t.times(offset_row(t, x, i), 3), offset_row(t, x, i)));
    roots.push_back(t.sub(t.times(offset_row(t, x, i), 3), offset_row(t, x, i + 2)));
  }
  EXPECT_EQ(check(t, roots, kAlone).asts.size(), 2u);
}

TEST(Offsets, OperandsOfAProductMayBeInEitherOrder) {
  Tensors t;
  const Id x = t.buffer({8, 4}), y = t.buffer({8, 4});
  std::vector<Id> roots;
  for (int64_t i = 0; i < 8; ++i) {
    const Id a = offset_row(t, x, i), b = offset_row(t, y, i);
    roots.push_back(i % 2 == 0 ? t.mul(a, b) : t.mul(b, a));
  }
  EXPECT_EQ(check(t, roots, kAlone).asts.size(), 1u);
}

/// Buffers are numbered in order of first use, which depends on how a program was written.
TEST(Offsets, NumbersOfParametersDoNotTellProgramsApart) {
  Tensors t;
  const Id x = t.buffer({4}), y = t.buffer({4}), z = t.buffer({4});
  const auto step = [&](Id a, Id b) { return t.add(t.relu(a), t.times(b, 2)); };
  EXPECT_EQ(check(t, {step(x, y), step(z, y), step(y, x), step(x, z)}, kAlone).asts.size(), 1u);
}

/// Gated loads may have negative offsets, as created by a pad. Here all share one gate.
TEST(Offsets, ShiftsBelowZero) {
  Tensors t;
  const Id x = t.buffer({12});
  std::vector<Id> roots;
  for (int64_t i = 0; i < 5; ++i)
    roots.push_back(t.times(t.pad(t.shrink(x, {i, i + 4}), {9, 0}), 2));
  EXPECT_EQ(check(t, roots, kAlone).asts.size(), 1u);
}

}  // namespace
}  // namespace plugrad::test
