#include <gtest/gtest.h>

#include <cmath>

#include "run_op.h"

namespace plugrad::sdk {
namespace {

uint64_t cast(uint32_t from, uint32_t to, uint64_t bits) {
  return run_op(PGR_OP_CAST, from, {bits}, to);
}
int64_t float_to_int(uint32_t from, uint32_t to, double value) {
  return static_cast<int64_t>(cast(from, to, encode_float(from, value)));
}
double int_to_float(uint32_t from, uint32_t to, int64_t value) {
  return decode_float(to, cast(from, to, static_cast<uint64_t>(value)));
}

TEST(Cast, FloatToIntTruncates) {
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_I32, -2.75), -2);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F64, PGR_DTYPE_U8, 255.9), 255);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F16, PGR_DTYPE_I64, 65504), 65504);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_U32, -0.9), 0);
}

TEST(Cast, FloatToIntSaturatesHere) {
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_I32, 3e9), INT32_MAX);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_I64, -HUGE_VAL), INT64_MIN);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_U8, -1), 0);
  EXPECT_EQ(static_cast<uint64_t>(float_to_int(PGR_DTYPE_F64, PGR_DTYPE_U64, 1e30)), UINT64_MAX);
  EXPECT_EQ(float_to_int(PGR_DTYPE_F32, PGR_DTYPE_I32, std::nan("")), 0);
}

TEST(Cast, IntToFloatRoundsOnce) {
  EXPECT_EQ(int_to_float(PGR_DTYPE_I32, PGR_DTYPE_F32, 16777217), 16777216.0);
  EXPECT_EQ(int_to_float(PGR_DTYPE_I64, PGR_DTYPE_F64, (int64_t{1} << 53) + 1), 9007199254740992.0);
  // 2^62 + 2^54 is midway between two bf16 values; one more must round up, although a conversion
  // through double would lose it.
  const int64_t half_way = (int64_t{1} << 62) + (int64_t{1} << 54);
  EXPECT_EQ(int_to_float(PGR_DTYPE_I64, PGR_DTYPE_BF16, half_way), std::ldexp(1, 62));
  EXPECT_EQ(int_to_float(PGR_DTYPE_I64, PGR_DTYPE_BF16, half_way + 1),
            std::ldexp(1, 62) + std::ldexp(1, 55));
  EXPECT_EQ(int_to_float(PGR_DTYPE_I64, PGR_DTYPE_BF16, INT64_MIN), -std::ldexp(1, 63));
  EXPECT_EQ(int_to_float(PGR_DTYPE_I32, PGR_DTYPE_F16, 100000), HUGE_VAL);
}

TEST(Cast, IntegersWrapAndExtend) {
  EXPECT_EQ(static_cast<int64_t>(cast(PGR_DTYPE_I32, PGR_DTYPE_I8, 300)), 44);
  EXPECT_EQ(static_cast<int64_t>(cast(PGR_DTYPE_U8, PGR_DTYPE_I8, 200)), -56);
  EXPECT_EQ(cast(PGR_DTYPE_I8, PGR_DTYPE_U32, static_cast<uint64_t>(-1)), 0xffffffffu);
  EXPECT_EQ(cast(PGR_DTYPE_U32, PGR_DTYPE_I64, 0xffffffffu), 0xffffffffu);
}

TEST(Cast, BoolIsZeroOrOne) {
  EXPECT_EQ(cast(PGR_DTYPE_I32, PGR_DTYPE_BOOL, 256), 1u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BOOL, encode_float(PGR_DTYPE_F32, std::nan(""))), 1u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BOOL, encode_float(PGR_DTYPE_F32, -0.0)), 0u);
  EXPECT_EQ(decode_float(PGR_DTYPE_F16, cast(PGR_DTYPE_BOOL, PGR_DTYPE_F16, 1)), 1.0);
  EXPECT_EQ(cast(PGR_DTYPE_BOOL, PGR_DTYPE_I64, 1), 1u);
}

TEST(Cast, FloatsRoundToNearestEven) {
  auto narrowed = [](uint32_t from, uint32_t to, double value) {
    return decode_float(to, cast(from, to, encode_float(from, value)));
  };
  EXPECT_EQ(narrowed(PGR_DTYPE_F64, PGR_DTYPE_F32, 1 + std::ldexp(1, -24)), 1.0);
  // A cast through f32 would round twice, to 1.
  EXPECT_EQ(narrowed(PGR_DTYPE_F64, PGR_DTYPE_F16, 1 + std::ldexp(1, -11) + std::ldexp(1, -40)),
            1 + std::ldexp(1, -10));
  EXPECT_EQ(narrowed(PGR_DTYPE_F32, PGR_DTYPE_BF16, 3.4e38), HUGE_VAL);
  EXPECT_EQ(narrowed(PGR_DTYPE_F16, PGR_DTYPE_F8E5M2, 57344), 57344);
  EXPECT_EQ(narrowed(PGR_DTYPE_BF16, PGR_DTYPE_F32, -1.5), -1.5);
}

TEST(Bitcast, KeepsBits) {
  EXPECT_EQ(run_op(PGR_OP_BITCAST, PGR_DTYPE_F32, {0x80000000u}, PGR_DTYPE_I32),
            0xffffffff80000000u);
  EXPECT_EQ(run_op(PGR_OP_BITCAST, PGR_DTYPE_I32, {0xffffffff80000000u}, PGR_DTYPE_F32),
            0x80000000u);
  EXPECT_EQ(run_op(PGR_OP_BITCAST, PGR_DTYPE_I16, {0xffffffffffff8000u}, PGR_DTYPE_F16), 0x8000u);
  EXPECT_EQ(run_op(PGR_OP_BITCAST, PGR_DTYPE_I64, {0xfff0000000000000u}, PGR_DTYPE_F64),
            0xfff0000000000000u);
}

}  // namespace
}  // namespace plugrad::sdk
