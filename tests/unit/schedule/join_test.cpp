// A tensor concatenated of many parts is one computation for the parts of equal form.
#include <functional>

#include "check.h"

namespace plugrad::test {
namespace {

/// The parts side by side along `axis`, as cat records it.
Id joined(Tensors& t, const std::vector<Id>& parts, size_t axis = 0) {
  Dims whole = t.shape(parts[0]);
  whole[axis] = 0;
  for (Id part : parts) whole[axis] += t.shape(part)[axis];
  Dims row(whole.size(), 1);
  row[axis] = whole[axis];
  const Id counter = t.reshape(t.iota(whole[axis]), row);
  Id result = kNoId;
  int64_t begin = 0;
  for (Id part : parts) {
    Dims pads(2 * whole.size(), 0);
    pads[2 * axis] = begin;
    begin += t.shape(part)[axis];
    pads[2 * axis + 1] = whole[axis] - begin;
    const Id framed = t.pad(part, pads);
    const Id before = t.g.binary(Op::CmpLt, counter, t.g.constant(DType::I32, pads[2 * axis]));
    result = result == kNoId ? framed : t.g.where(t.expand(before, whole), result, framed);
  }
  return result;
}

using MakePart = std::function<Id(Tensors&, Id source, int64_t number)>;

Id row(Tensors& t, Id x, int64_t i) {
  return t.shrink(x, {i, i + 1, 0, t.shape(x)[1]});
}

Id scaled_row(Tensors& t, Id x, int64_t i) {
  return t.plus(t.times(row(t, x, i), static_cast<double>(i % 7 + 2)), 1);
}

Id joined_of(Tensors& t, int64_t count, const MakePart& part, size_t axis = 0) {
  const Id x = t.buffer({count, 3});
  std::vector<Id> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(part(t, x, i));
  return joined(t, parts, axis);
}

void expect_one_kernel(const MakePart& part, size_t axis = 0) {
  Tensors t;
  EXPECT_EQ(kernel_count(check(t, {joined_of(t, 40, part, axis)})), 1u);
}

size_t longest_ast(const schedule::Plan& plan) {
  size_t nodes = 0;
  for (const auto& ast : plan.asts) nodes = std::max<size_t>(nodes, ast->graph.size());
  return nodes;
}

TEST(Join, OneKernelForEqualParts) {
  expect_one_kernel(row);
  expect_one_kernel(scaled_row);
  expect_one_kernel(row, 1);
  expect_one_kernel(scaled_row, 1);
}

TEST(Join, WorkAndKernelsDoNotGrowWithTheParts) {
  for (int64_t count : {100, 10'000}) {
    Tensors t;
    const Id root = joined_of(t, count, scaled_row);
    const schedule::Plan plan = plan_of(t, {root});
    EXPECT_EQ(kernel_count(plan), 1u);
    EXPECT_EQ(plan.asts.size(), 1u);
    EXPECT_LE(longest_ast(plan), 60u);
    EXPECT_LE(static_cast<double>(plan.visits), 20.0 * static_cast<double>(count));
  }
}

TEST(Join, NumbersAreRead) {
  for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::I32, DType::U64}) {
    Tensors t;
    std::vector<Id> parts;
    for (int i = 0; i < 50; ++i) {
      const Id number = is_float(dtype) ? t.g.constant(dtype, i == 7 ? -0.0 : i % 13 - 4.5)
                                        : t.g.constant(dtype, int64_t{i % 13 - 4});
      parts.push_back(t.reshape(number, {1}));
    }
    const schedule::Plan plan = check(t, {joined(t, parts)});
    EXPECT_EQ(kernel_count(plan), 1u);
    EXPECT_LE(longest_ast(plan), 20u) << name_of(dtype);
  }
}

TEST(Join, KeepsTheSignOfZeroAndNaN) {
  Tensors t;
  std::vector<Id> parts;
  for (int i = 0; i < 20; ++i) {
    const double values[] = {-0.0, NAN, INFINITY, 0.0};
    parts.push_back(t.reshape(t.number(values[i % 4]), {1}));
  }
  const auto have = run_plan(plan_of(t, {joined(t, parts)}), {})[0];
  for (size_t i = 0; i < have.size(); i += 4) {
    EXPECT_TRUE(std::signbit(std::bit_cast<double>(have[i])));
    EXPECT_TRUE(std::isnan(std::bit_cast<double>(have[i + 1])));
    EXPECT_TRUE(std::isinf(std::bit_cast<double>(have[i + 2])));
    EXPECT_FALSE(std::signbit(std::bit_cast<double>(have[i + 3])));
  }
}

TEST(Join, PartsOfEveryKind) {
  // Reversed, every second one, several rows each, flipped, transposed, padded.
  const std::vector<MakePart> kinds = {
      [](Tensors& t, Id x, int64_t i) { return t.plus(row(t, x, 39 - i), 2); },
      [](Tensors& t, Id x, int64_t i) { return t.times(row(t, x, i / 2 * 2), 2); },
      [](Tensors& t, Id x, int64_t i) { return t.flip(row(t, x, i), {0, 1}); },
      [](Tensors& t, Id x, int64_t i) { return t.pad(row(t, x, i), {1, 0, 0, 0}); },
      [](Tensors& t, Id x, int64_t i) { return t.expand(t.shrink(x, {i, i + 1, 1, 2}), {2, 3}); },
      [](Tensors& t, Id x, int64_t i) {  // different values
        const Id r = row(t, x, i);
        return i % 2 == 0 ? t.plus(r, 1) : t.mul(r, r);
      },
      [](Tensors& t, Id x, int64_t i) {  // of different lengths
        return t.shrink(x, {std::max<int64_t>(i - i % 5, 0), i + 1, 0, 3});
      },
      [](Tensors& t, Id x, int64_t i) { return t.sum(scaled_row(t, x, i), {1}); },
      [](Tensors& t, Id x, int64_t i) {  // read twice
        return t.mul(row(t, x, i), row(t, x, (i + 1) % 40));
      },
  };
  for (const MakePart& kind : kinds) {
    Tensors t;
    check(t, {joined_of(t, 40, kind)});
  }
}

TEST(Join, TransposedParts) {
  Tensors t;
  const Id x = t.buffer({40, 3});
  std::vector<Id> parts;
  for (int64_t i = 0; i < 40; ++i) parts.push_back(t.transpose(scaled_row(t, x, i)));
  EXPECT_EQ(kernel_count(check(t, {joined(t, parts, 1)})), 1u);
}

TEST(Join, EveryFourthRow) {
  Tensors t;
  const Id x = t.buffer({160, 2});
  std::vector<Id> parts;
  for (int64_t i = 0; i < 40; ++i)
    parts.push_back(t.plus(t.shrink(x, {4 * i + 2, 4 * i + 3, 0, 2}), 1));
  EXPECT_EQ(kernel_count(check(t, {joined(t, parts)})), 1u);
}

TEST(Join, RowsInAnyOrder) {
  const auto other = [](Tensors& t, Id x, int64_t i) {
    return t.plus(t.times(row(t, x, i * 7 % 40), static_cast<double>(i + 2)), 1);
  };
  expect_one_kernel(other);
  expect_one_kernel(other, 1);
  expect_one_kernel([](Tensors& t, Id x, int64_t i) {  // two that overlap others
    const int64_t from = i * i % 37;
    return t.times(t.shrink(x, {from, from + 2, 0, 3}), static_cast<double>(i + 2));
  });
  expect_one_kernel([](Tensors& t, Id x, int64_t i) {  // of the other axis, between 1 and 3
    return t.times(t.shrink(x, {0, 40, i % 2, i % 2 + 2}), static_cast<double>(i + 2));
  });
}

TEST(Join, AValueThatIsAlsoAResult) {
  Tensors t;
  const Id x = t.buffer({40, 3});
  std::vector<Id> parts;
  for (int64_t i = 0; i < 40; ++i) parts.push_back(scaled_row(t, x, i));
  const Id all = joined(t, parts);
  check(t, {all, parts[20], t.plus(all, 1)});
}

TEST(Join, AJoinOfJoins) {
  Tensors t;
  std::vector<Id> parts;
  for (int i = 0; i < 20; ++i) parts.push_back(t.plus(joined_of(t, 20, scaled_row), i));
  check(t, {joined(t, parts)});
}

/// A long expression of one value of the buffer, as a random number is of its key.
Id long_expression(Tensors& t, Id x, int steps) {
  Id y = x;
  for (int i = 0; i < steps; ++i) y = t.add(t.times(y, 0.5), t.plus(x, i % 5));
  return y;
}

TEST(Join, LongExpressionsOfManyBuffersAreOneKernel) {
  for (const bool summed : {true, false}) {
    Tensors t;
    std::vector<Id> parts;
    for (int i = 0; i < 200; ++i) parts.push_back(long_expression(t, t.buffer({1}), 40));
    Id root = parts[0];
    for (size_t i = 1; i < parts.size(); ++i) root = t.add(root, parts[i]);
    if (!summed) root = joined(t, parts);
    const schedule::Plan plan = check(t, {root}, {.max_params = 1000});
    EXPECT_LE(plan.asts.size(), 3u) << (summed ? "sum" : "cat");
    EXPECT_LE(longest_ast(plan), 3000u);
  }
}

// 60 expressions of about 160 instructions: split where a kernel is too long, not individually.
TEST(Join, LongExpressionsOfLargeBuffersAreNotStoredEach) {
  Tensors t;
  Id sum = t.buffer({1000});
  for (int i = 0; i < 60; ++i) sum = t.add(sum, long_expression(t, t.buffer({1000}), 40));
  EXPECT_LT(kernel_count(plan_of(t, {sum}, {.max_params = 1000})), 20u);
}

TEST(Join, AssignmentsInAnyOrder) {
  Tensors t;
  const Id source = t.buffer({60});
  Id x = t.buffer({40});
  const Id index = t.iota(40);
  for (int64_t i = 0; i < 60; ++i) {
    const int64_t to = i * 17 % 38, size = i % 3 + 1;
    const Id inside =
        t.g.binary(Op::And, t.g.binary(Op::CmpLt, t.g.constant(DType::I32, to - 1), index),
                   t.g.binary(Op::CmpLt, index, t.g.constant(DType::I32, to + size)));
    const Id value = t.expand(t.shrink(source, {i, i + 1}), {size});
    x = t.g.where(inside, t.pad(t.times(value, 3), {to, 40 - to - size}), x);
  }
  check(t, {x});
}

}  // namespace
}  // namespace plugrad::test
