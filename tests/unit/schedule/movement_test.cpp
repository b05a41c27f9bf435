// Kernels that only move elements: the host writes what their loops write.
#include "schedule/lower/movement.h"

#include <random>

#include "check.h"
#include "oracle/array.h"
#include "run_plan.h"

namespace plugrad::test {
namespace {

struct Case {
  std::mt19937 random;
  Tensors t{};

  int64_t pick(int64_t below) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(below));
  }
  // Another shape of the same elements: an axis in two, or two axes in one.
  Id reshaped(Id x) {
    Dims shape = t.shape(x);
    const auto axis = static_cast<size_t>(pick(static_cast<int64_t>(shape.size())));
    if (shape[axis] % 2 == 0) {
      shape[axis] /= 2;
      shape.insert(shape.begin() + static_cast<int64_t>(axis) + 1, 2);
    } else if (axis + 1 < shape.size()) {
      shape[axis] *= shape[axis + 1];
      shape.erase(shape.begin() + static_cast<int64_t>(axis) + 1);
    }
    return t.reshape(x, shape);
  }
  Id moved(Id x) {
    const size_t rank = t.shape(x).size();
    Dims values;
    switch (pick(5)) {
      case 0:
        return reshaped(x);
      case 1:
        for (size_t i = 0; i < rank; ++i) values.push_back(static_cast<int64_t>(i));
        std::ranges::shuffle(values, random);
        return t.permute(x, values);
      case 2:
        for (size_t i = 0; i < 2 * rank; ++i) values.push_back(pick(4) == 0 ? 1 : 0);
        return t.pad(x, values);
      case 3:
        for (const int64_t size : t.shape(x)) {
          values.push_back(size > 2 ? pick(2) : 0);
          values.push_back(size > 2 ? size - pick(2) : size);
        }
        return t.shrink(x, values);
      default:
        for (size_t i = 0; i < rank; ++i) values.push_back(pick(2));
        return t.flip(x, values);
    }
  }
};

oracle::Array numbered(DType dtype, const Dims& shape) {
  oracle::Array array{dtype, shape, {}};
  for (int64_t i = 0; i < element_count(shape); ++i)
    array.bits.push_back(bits_of(dtype == DType::Bool ? i % 2 : i % 120 + 1, dtype));
  return array;
}

// The elements that the host writes, of memory that holds something else before.
std::vector<uint64_t> by_host(const schedule::Movement& movement, const oracle::Array& from,
                              int64_t count) {
  const std::vector<std::byte> bytes = oracle::to_bytes(from);
  std::vector<std::byte> to(static_cast<size_t>(count) * size_of(movement.result), std::byte{99});
  movement.run(bytes.data(), to.data());
  return oracle::from_bytes(movement.result, {count}, to).bits;
}

TEST(Movement, TheHostMovesElementsAsTheKernelDoes) {
  const DType dtypes[] = {DType::F32, DType::I8, DType::F16, DType::I64, DType::U16, DType::Bool};
  int found = 0, padded = 0;
  constexpr int kCases = 600;
  for (uint32_t seed = 0; seed < kCases; ++seed) {
    Case c{std::mt19937(seed)};
    const DType dtype = dtypes[c.pick(6)];
    const Dims shape = {1 + c.pick(6), 2 * (1 + c.pick(9)), 1 + c.pick(20)};
    Id x = c.t.buffer(shape, dtype);
    for (int64_t i = 0, n = 1 + c.pick(6); i < n; ++i) x = c.moved(x);
    const bool is_small_integer = dtype == DType::I8 || dtype == DType::U16;
    if (is_small_integer && c.pick(2) == 0) x = c.t.g.cast(x, DType::F32);
    const auto plan = check(c.t, {c.t.contiguous(x)});
    if (plan.steps.size() != 1) continue;  // the input itself, or nothing to move
    const auto movement = schedule::movement_of(*plan.asts.at(plan.steps[0].ast));
    if (!movement) continue;
    ++found;
    padded += std::ranges::any_of(movement->axes, [](const auto& axis) {
      return std::ranges::find(axis.is_gap, 1) != axis.is_gap.end();
    });
    const oracle::Array from = numbered(dtype, shape);
    const auto wanted = run_plan(plan, {from})[0];
    EXPECT_EQ(by_host(*movement, from, std::ssize(wanted)), wanted) << "seed " << seed;
  }
  EXPECT_GT(found, kCases / 2);
  EXPECT_GT(padded, 50);
}

TEST(Movement, ArithmeticIsNone) {
  const auto is_movement = [](auto make) {
    Tensors t;
    const auto plan = check(t, {t.contiguous(make(t))});
    return schedule::movement_of(*plan.asts.at(plan.steps.at(0).ast)) != nullptr;
  };
  EXPECT_TRUE(is_movement([](Tensors& t) { return t.transpose(t.buffer({4, 6})); }));
  EXPECT_FALSE(is_movement([](Tensors& t) { return t.times(t.buffer({4, 6}), 2); }));
  EXPECT_FALSE(is_movement([](Tensors& t) { return t.plus(t.pad(t.buffer({4}), {1, 1}), 1); }));
  EXPECT_FALSE(is_movement([](Tensors& t) { return t.sum(t.buffer({4, 6}), {0}); }));
  EXPECT_FALSE(is_movement([](Tensors& t) {  // 300 as i8 and back is 44
    const Id x = t.buffer({4, 6});
    return t.g.cast(t.g.cast(x, DType::I8), DType::F32);
  }));
  EXPECT_FALSE(is_movement([](Tensors& t) {  // rounds
    return t.g.cast(t.buffer({4, 6}), DType::F16);
  }));
}

}  // namespace
}  // namespace plugrad::test
