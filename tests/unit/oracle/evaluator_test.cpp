#include "oracle/evaluator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "oracle/alu.h"
#include "plugrad/error.h"
#include "plugrad/plugin_api/kernel_ir.h"

using namespace plugrad;
using oracle::Array;
using testing::ElementsAre;

namespace {

Array floats(std::vector<int64_t> shape, const std::vector<double>& values,
             DType dtype = DType::F32) {
  Array array{dtype, std::move(shape), {}};
  for (double v : values) array.bits.push_back(bits_of(v, dtype));
  return array;
}

std::vector<double> reals(const Array& array) {
  std::vector<double> values;
  for (size_t i = 0; i < array.size(); ++i) values.push_back(array.real(i));
  return values;
}

class EvaluatorTest : public testing::Test {
 protected:
  Id leaf(const Array& array) {
    std::vector<int64_t> list = {static_cast<int64_t>(arrays.size()), 1};
    list.insert(list.end(), array.shape.begin(), array.shape.end());
    arrays.push_back(array);
    return g.add(Op::Buffer, array.dtype, {}, g.list(list));
  }
  Array run(Id root) {
    const auto leaves = [&](Id id) { return arrays[buffer_of(id)]; };
    return oracle::evaluate(g, std::span(&root, 1), leaves)[0];
  }
  size_t buffer_of(Id id) { return static_cast<size_t>(g.arg_list(id)[0]); }
  Id move(Op op, Id x, std::initializer_list<int64_t> list) {
    return g.add(op, g[x].dtype, {x}, g.list(list));
  }
  Id reduce(Op op, Id x, std::vector<int64_t> axes) {
    axes.insert(axes.begin(), static_cast<int64_t>(op));
    return g.add(Op::Reduce, g[x].dtype, {x}, g.list(axes));
  }

  Graph g;
  std::vector<Array> arrays;
};

TEST_F(EvaluatorTest, MovementOpsPutElementsWhereTheySay) {
  const Id x = leaf(floats({2, 3}, {0, 1, 2, 3, 4, 5}));
  EXPECT_THAT(reals(run(move(Op::Permute, x, {1, 0}))), ElementsAre(0, 3, 1, 4, 2, 5));
  EXPECT_THAT(reals(run(move(Op::Flip, x, {0, 1}))), ElementsAre(2, 1, 0, 5, 4, 3));
  EXPECT_THAT(reals(run(move(Op::Flip, x, {1, 0}))), ElementsAre(3, 4, 5, 0, 1, 2));
  EXPECT_THAT(reals(run(move(Op::Shrink, x, {0, 2, 1, 3}))), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(reals(run(move(Op::Pad, x, {1, 0, 0, 1}))),
              ElementsAre(0, 0, 0, 0, 0, 1, 2, 0, 3, 4, 5, 0));
  const Id column = move(Op::Reshape, leaf(floats({2}, {7, 8})), {2, 1});
  EXPECT_THAT(reals(run(move(Op::Expand, column, {2, 3}))), ElementsAre(7, 7, 7, 8, 8, 8));
  EXPECT_THAT(run(move(Op::Reshape, x, {3, 2})).shape, ElementsAre(3, 2));
}

TEST_F(EvaluatorTest, ReductionsRoundOnceAndHaveIdentities) {
  const Id x = leaf(floats({2, 3}, {1e8, 1, -1e8, 4, 5, 6}));
  EXPECT_THAT(reals(run(reduce(Op::Add, x, {1}))),
              ElementsAre(1, 15));  // sequential f32 sums would give 0
  EXPECT_THAT(reals(run(reduce(Op::Max, x, {0}))), ElementsAre(1e8, 5, 6));
  EXPECT_THAT(reals(run(reduce(Op::Mul, x, {0, 1}))), ElementsAre(static_cast<float>(-1e16 * 120)));
  const Id none = leaf(floats({0, 2}, {}));
  EXPECT_THAT(reals(run(reduce(Op::Add, none, {0}))), ElementsAre(0, 0));
  EXPECT_THAT(reals(run(reduce(Op::Mul, none, {0}))), ElementsAre(1, 1));
  EXPECT_THAT(reals(run(reduce(Op::Max, none, {0}))), ElementsAre(-INFINITY, -INFINITY));
  const Id no_ints = leaf({DType::I8, {0}, {}});
  EXPECT_THAT(reals(run(reduce(Op::Max, no_ints, {0}))), ElementsAre(-128));
}

TEST_F(EvaluatorTest, ScalarsStandForTheSameValueEverywhere) {
  const Id x = leaf(floats({3}, {1, 2, 3}));
  const Id two = g.constant(DType::F32, 2.0);
  EXPECT_THAT(reals(run(g.binary(Op::Mul, x, two))), ElementsAre(2, 4, 6));
  EXPECT_THAT(reals(run(g.where(g.binary(Op::CmpLt, x, two), x, two))), ElementsAre(1, 2, 2));
  const Id counting = g.add(Op::Iota, DType::I32, {}, 4);
  EXPECT_THAT(reals(run(counting)), ElementsAre(0, 1, 2, 3));
}

TEST_F(EvaluatorTest, ValuesAreRoundedToTheDtypeAfterEveryOp) {
  const Id half = leaf(floats({2}, {2048, 0.1}, DType::F16));
  const Id one = g.constant(DType::F16, 1.0);
  EXPECT_EQ(reals(run(g.binary(Op::Add, half, one)))[0], 2048);  // 2049 is between two f16 values
  EXPECT_EQ(reals(run(half))[1], 0.0999755859375);
  const Id bytes = leaf({DType::U8, {2}, {200, 255}});
  EXPECT_THAT(reals(run(g.binary(Op::Add, bytes, bytes))), ElementsAre(144, 254));
}

TEST_F(EvaluatorTest, ALongChainNeedsNoRecursion) {
  Id x = leaf(floats({1}, {0}));
  const Id one = g.constant(DType::F32, 1.0);
  for (int i = 0; i < 100000; ++i) x = g.binary(Op::Add, x, one);
  EXPECT_THAT(reals(run(x)), ElementsAre(100000));
}

TEST_F(EvaluatorTest, KernelOpsAreRefused) {
  const Id load = g.add(Op::Barrier, DType::Void, {});
  EXPECT_THROW(run(load), Error);
}

int64_t ints(Op op, DType dtype, int64_t a, int64_t b) {
  const uint64_t args[] = {static_cast<uint64_t>(a), static_cast<uint64_t>(b)};
  return static_cast<int64_t>(oracle::apply(op, dtype, dtype, args));
}

TEST(EvaluatorAlu, IntegerDivisionAtItsEdges) {
  constexpr int64_t kLowest = INT64_MIN;
  EXPECT_EQ(ints(Op::IDiv, DType::I32, -7, 2), -3);
  EXPECT_EQ(ints(Op::Mod, DType::I32, -7, 2), -1);
  EXPECT_EQ(ints(Op::FloorDiv, DType::I32, -7, 2), -4);
  EXPECT_EQ(ints(Op::FloorMod, DType::I32, -7, 2), 1);
  EXPECT_EQ(ints(Op::FloorDiv, DType::I32, 7, -2), -4);
  EXPECT_EQ(ints(Op::FloorMod, DType::I32, 7, -2), -1);
  for (Op op : {Op::IDiv, Op::FloorDiv}) {
    EXPECT_EQ(ints(op, DType::I32, 5, 0), 0);
    EXPECT_EQ(ints(op, DType::I64, kLowest, -1), kLowest);
    EXPECT_EQ(ints(op, DType::I8, -128, -1), -128);
    EXPECT_EQ(ints(op, DType::U64, -1, 2), INT64_MAX);
  }
  for (Op op : {Op::Mod, Op::FloorMod}) EXPECT_EQ(ints(op, DType::I32, 5, 0), 5);
}

TEST(EvaluatorAlu, ShiftsOutsideTheWidth) {
  EXPECT_EQ(ints(Op::Shl, DType::U8, 3, 7), 128);
  EXPECT_EQ(ints(Op::Shl, DType::I32, 1, 32), 0);
  EXPECT_EQ(ints(Op::Shr, DType::I32, -8, 1), -4);
  EXPECT_EQ(ints(Op::Shr, DType::I32, -8, 99), -1);
  EXPECT_EQ(ints(Op::Shr, DType::U32, 8, 99), 0);
}

TEST(EvaluatorAlu, UnsignedOrder) {
  EXPECT_EQ(ints(Op::Max, DType::U64, -1, 1), -1);
  EXPECT_EQ(ints(Op::Max, DType::I64, -1, 1), 1);
}

TEST(EvaluatorAlu, CastsSaturateAndFollowNaN) {
  const auto cast = [](double v, DType from, DType to) {
    return static_cast<int64_t>(oracle::cast_value(bits_of(v, from), from, to));
  };
  EXPECT_EQ(cast(1e10, DType::F32, DType::I32), INT32_MAX);
  EXPECT_EQ(cast(-1.9, DType::F32, DType::I32), -1);
  EXPECT_EQ(cast(std::nan(""), DType::F32, DType::I32), 0);
  EXPECT_EQ(cast(0.5, DType::F32, DType::Bool), 1);
  const uint64_t near =
      (uint64_t{1} << 54) + (uint64_t{1} << 30) + 1;  // through double it would round twice
  EXPECT_EQ(std::bit_cast<double>(oracle::cast_value(near, DType::I64, DType::F32)),
            static_cast<double>(static_cast<float>(near)));
}

TEST(EvaluatorAlu, BitcastReadsStorageBits) {
  EXPECT_EQ(oracle::bitcast_value(bits_of(1.0, DType::F32), DType::F32, DType::I32), 0x3f800000u);
  EXPECT_EQ(oracle::bitcast_value(0x3c00, DType::U16, DType::F16), bits_of(1.0, DType::F16));
}

TEST(EvaluatorArray, BytesAndBackForEveryDtype) {
  for (int number = 1; number < PGR_DTYPE_COUNT; ++number) {
    const DType dtype = static_cast<DType>(number);
    const Array array{dtype, {2}, {bits_of(1.0, dtype), bits_of(0.0, dtype)}};
    const Array back = oracle::from_bytes(dtype, {2}, oracle::to_bytes(array));
    EXPECT_EQ(back.bits, array.bits) << name_of(dtype);
  }
}

}  // namespace
