// Plans compute the values of their graphs.
#include <gmock/gmock.h>

#include "check.h"
#include "plugrad/error.h"

namespace plugrad::test {
namespace {

TEST(Values, Elementwise) {
  Tensors t;
  const Id a = t.buffer({4, 4}), b = t.buffer({4, 4}), c = t.buffer({4, 4});
  EXPECT_EQ(kernel_count(check(t, {t.relu(t.add(t.mul(a, b), c))})), 1u);
}

TEST(Values, Reductions) {
  Tensors t;
  const Id a = t.buffer({3, 4, 5});
  check(t, {t.sum(a, {0, 1, 2}), t.sum(a, {1}), t.max(a, {0, 2}), t.reduce(Op::Mul, a, {2})});
}

TEST(Values, MovementInEveryCombination) {
  Tensors t;
  const Id a = t.buffer({4, 6});
  const Id p = t.pad(t.permute(a, {1, 0}), {1, 2, 0, 1});  // 9, 5
  const Id s = t.shrink(t.flip(p, {1, 0}), {2, 8, 1, 4});  // 6, 3
  const Id e = t.expand(t.reshape(s, {2, 1, 9}), {2, 3, 9});
  check(t, {t.plus(p, 1), t.plus(s, 1), t.times(t.reshape(e, {6, 9}), 2),
            t.contiguous(t.reshape(e, {9, 6}))});
}

TEST(Values, PadOfValuesThatAreNotZeroOutside) {
  Tensors t;
  const Id a = t.buffer({3, 3});
  check(t, {t.pad(t.exp(a), {1, 1, 0, 2}), t.pad(t.sum(t.plus(a, 1), {1}), {1, 0, 2, 0})});
}

TEST(Values, MatmulConvolutionSoftmax) {
  Tensors t;
  const Id a = t.buffer({5, 7}), b = t.buffer({7, 3}), x = t.buffer({2, 3, 6, 6}),
           w = t.buffer({4, 3, 3, 3});
  check(t, {t.matmul(a, b), t.softmax(a), t.conv2d(x, w), t.conv2d(x, w, 1),
            t.max(t.windows(x, 2, 2), {4, 5})});
}

TEST(Values, SmallFloatsAccumulateInF32) {
  Tensors t;
  const Id a = t.buffer({300}, DType::F16);
  std::vector<oracle::Array> inputs(1);
  inputs[0] = {DType::F16, {300}, std::vector<uint64_t>(300, bits_of(9.0, DType::F16))};
  inputs[0].bits[0] = bits_of(16384.0, DType::F16);
  const auto out = run_plan(plan_of(t, {t.sum(a, {0})}), inputs);
  EXPECT_EQ(std::bit_cast<double>(out[0][0]), 19072);  // 16384 + 299 * 9 = 19075, rounded once
}

TEST(Values, BoolReductions) {
  Tensors t;
  const Id a = t.buffer({3, 4}, DType::I32);
  const Id c = t.g.binary(Op::CmpLt, a, t.g.constant(DType::I32, int64_t{1}));
  check(t, {t.max(c, {1}), t.reduce(Op::Mul, c, {0})});
}

TEST(Values, IotaAndScalars) {
  Tensors t;
  const Id a = t.buffer({4, 4}), s = t.buffer({});
  const Id rows = t.expand(t.reshape(t.iota(4), {4, 1}), {4, 4}),
           columns = t.expand(t.reshape(t.iota(4), {1, 4}), {4, 4});
  const Id eye = t.g.cast(t.g.binary(Op::CmpEq, rows, columns), DType::F32);
  const Id scaled = t.g.binary(Op::Mul, a, s);
  EXPECT_EQ(kernel_count(check(t, {t.mul(eye, a)})), 1u);
  check(t, {scaled, t.g.binary(Op::Add, t.sum(t.reshape(scaled, {16}), {0}), s), t.iota(5)});
}

TEST(Values, SizesZeroAndOne) {
  Tensors t;
  const Id empty = t.buffer({0, 3}), one = t.buffer({1, 1}), row = t.buffer({1, 3});
  const auto plan = check(
      t, {t.plus(empty, 1), t.sum(empty, {0}), t.max(empty, {0}), t.reduce(Op::Mul, empty, {0, 1}),
          t.pad(empty, {1, 1, 0, 0}), t.add(t.pad(empty, {2, 0, 0, 0}), t.expand(row, {2, 3})),
          t.sum(one, {0, 1}), t.relu(one), t.matmul(t.transpose(empty), empty)});
  EXPECT_EQ(plan.buffers[plan.root_buffers[0]].elem_count, 0);
}

TEST(Values, RootsThatAreThereAlreadyCostNothing) {
  Tensors t;
  const Id a = t.buffer({2, 6});
  const Id b = t.plus(a, 1);
  const auto plan = check(t, {a, t.reshape(a, {3, 4}), t.contiguous(a), b, t.reshape(b, {12}), b});
  EXPECT_EQ(kernel_count(plan), 1u);
  EXPECT_EQ(plan.root_buffers[0], 0u);
  EXPECT_EQ(plan.root_buffers[1], 0u);
  EXPECT_EQ(plan.root_buffers[3], plan.root_buffers[4]);
}

TEST(Values, CopiesBetweenDevices) {
  Tensors t;
  const Id a = t.buffer({4}), b = t.buffer({4}, DType::F32, 2);
  const Id there = t.copy(t.plus(a, 1), 2);
  const auto plan = check(t, {t.mul(there, b), t.copy(t.number(3), 2), t.copy(b, 2)});
  ASSERT_EQ(plan.steps.size(), 4u);
  EXPECT_EQ(kernel_count(plan), 3u);
}

TEST(Values, MixedDevicesAreAnError) {
  Tensors t;
  const Id sum = t.add(t.buffer({4}), t.buffer({4}, DType::F32, 2));
  try {
    plan_of(t, {sum});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::User);
    EXPECT_THAT(std::string(e.what()),
                ::testing::AllOf(::testing::HasSubstr("devices number "), ::testing::HasSubstr("1"),
                                 ::testing::HasSubstr("2")));
  }
}

}  // namespace
}  // namespace plugrad::test
