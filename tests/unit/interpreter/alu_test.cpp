#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "run_op.h"

namespace plugrad::sdk {
namespace {

constexpr double kInf = HUGE_VAL;
const double kNan = std::nan("");

struct IntCase {
  uint32_t op, dtype;
  std::vector<int64_t> operands;
  int64_t expected;
};

class IntEdge : public testing::TestWithParam<IntCase> {};

TEST_P(IntEdge, HasTheDocumentedValue) {
  const IntCase& c = GetParam();
  EXPECT_EQ(int_op(c.op, c.dtype, c.operands), c.expected)
      << op_info(c.op)->name << " " << dtype_name(c.dtype) << " " << c.operands[0];
}

constexpr int64_t kMin32 = INT32_MIN, kMax32 = INT32_MAX, kMin64 = INT64_MIN, kMax64 = INT64_MAX;
const IntCase kIntCases[] = {
    {PGR_OP_ADD, PGR_DTYPE_I8, {127, 1}, -128},
    {PGR_OP_ADD, PGR_DTYPE_U8, {255, 1}, 0},
    {PGR_OP_ADD, PGR_DTYPE_I32, {kMax32, 1}, kMin32},
    {PGR_OP_ADD, PGR_DTYPE_I64, {kMax64, 1}, kMin64},
    {PGR_OP_SUB, PGR_DTYPE_U16, {0, 1}, 65535},
    {PGR_OP_SUB, PGR_DTYPE_I32, {kMin32, 1}, kMax32},
    {PGR_OP_MUL, PGR_DTYPE_I16, {300, 300}, 24464},
    {PGR_OP_MUL, PGR_DTYPE_U32, {65536, 65536}, 0},
    {PGR_OP_MUL, PGR_DTYPE_U16, {65535, 65535}, 1},
    {PGR_OP_NEG, PGR_DTYPE_I8, {-128}, -128},
    {PGR_OP_NEG, PGR_DTYPE_U32, {1}, 4294967295},
    {PGR_OP_IDIV, PGR_DTYPE_I32, {-7, 2}, -3},
    {PGR_OP_IDIV, PGR_DTYPE_I32, {7, -2}, -3},
    {PGR_OP_IDIV, PGR_DTYPE_I32, {7, 0}, 0},
    {PGR_OP_IDIV, PGR_DTYPE_I32, {kMin32, -1}, kMin32},
    {PGR_OP_IDIV, PGR_DTYPE_I64, {kMin64, -1}, kMin64},
    {PGR_OP_IDIV, PGR_DTYPE_I8, {-128, -1}, -128},
    {PGR_OP_IDIV, PGR_DTYPE_U64, {-1, 2}, kMax64},
    {PGR_OP_MOD, PGR_DTYPE_I32, {-7, 2}, -1},
    {PGR_OP_MOD, PGR_DTYPE_I32, {7, -2}, 1},
    {PGR_OP_MOD, PGR_DTYPE_I32, {7, 0}, 7},
    {PGR_OP_MOD, PGR_DTYPE_I64, {kMin64, -1}, 0},
    {PGR_OP_MAX, PGR_DTYPE_I32, {-1, 1}, 1},
    {PGR_OP_MAX, PGR_DTYPE_U8, {255, 1}, 255},
    {PGR_OP_MAX, PGR_DTYPE_BOOL, {0, 1}, 1},
    {PGR_OP_AND, PGR_DTYPE_I8, {-1, 85}, 85},
    {PGR_OP_OR, PGR_DTYPE_BOOL, {0, 1}, 1},
    {PGR_OP_XOR, PGR_DTYPE_BOOL, {1, 1}, 0},
    {PGR_OP_XOR, PGR_DTYPE_I32, {-1, 1}, -2},
    {PGR_OP_SHL, PGR_DTYPE_I32, {1, 31}, kMin32},
    {PGR_OP_SHL, PGR_DTYPE_I32, {1, 32}, 0},
    {PGR_OP_SHL, PGR_DTYPE_I32, {1, -1}, 0},
    {PGR_OP_SHL, PGR_DTYPE_U8, {255, 4}, 240},
    {PGR_OP_SHR, PGR_DTYPE_I32, {-8, 1}, -4},
    {PGR_OP_SHR, PGR_DTYPE_I32, {-8, 40}, -1},
    {PGR_OP_SHR, PGR_DTYPE_I32, {8, -1}, 0},
    {PGR_OP_SHR, PGR_DTYPE_I8, {-128, 7}, -1},
    {PGR_OP_SHR, PGR_DTYPE_U32, {4294967295, 31}, 1},
    {PGR_OP_SHR, PGR_DTYPE_U64, {-1, 63}, 1},
    {PGR_OP_SHR, PGR_DTYPE_U64, {-1, 64}, 0},
};
INSTANTIATE_TEST_SUITE_P(All, IntEdge, testing::ValuesIn(kIntCases));

TEST(FloatEdge, MaxPropagatesNan) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32, PGR_DTYPE_F64}) {
    EXPECT_TRUE(std::isnan(float_op(PGR_OP_MAX, dtype, {kNan, 1})));
    EXPECT_TRUE(std::isnan(float_op(PGR_OP_MAX, dtype, {1, kNan})));
    EXPECT_EQ(float_op(PGR_OP_MAX, dtype, {-kInf, -3}), -3);
  }
}

TEST(FloatEdge, SignedZeroAndInfinityFollowIeee) {
  EXPECT_TRUE(std::signbit(float_op(PGR_OP_NEG, PGR_DTYPE_F32, {0.0})));
  EXPECT_FALSE(std::signbit(float_op(PGR_OP_ADD, PGR_DTYPE_F32, {-0.0, 0.0})));
  EXPECT_TRUE(std::signbit(float_op(PGR_OP_SQRT, PGR_DTYPE_F64, {-0.0})));
  EXPECT_TRUE(std::isnan(float_op(PGR_OP_SQRT, PGR_DTYPE_F32, {-1})));
  EXPECT_EQ(float_op(PGR_OP_RECIP, PGR_DTYPE_F16, {-0.0}), -kInf);
  EXPECT_TRUE(std::signbit(float_op(PGR_OP_TRUNC, PGR_DTYPE_F32, {-0.75})));
  EXPECT_EQ(float_op(PGR_OP_TRUNC, PGR_DTYPE_BF16, {-2.5}), -2);
  EXPECT_EQ(float_op(PGR_OP_LOG2, PGR_DTYPE_F32, {0}), -kInf);
  EXPECT_TRUE(std::isnan(float_op(PGR_OP_LOG2, PGR_DTYPE_F32, {-1})));
  EXPECT_EQ(float_op(PGR_OP_EXP2, PGR_DTYPE_F32, {-kInf}), 0);
  EXPECT_TRUE(std::isnan(float_op(PGR_OP_SIN, PGR_DTYPE_F32, {kInf})));
}

TEST(FloatEdge, DenormalsAreKept) {
  const double smallest = std::numeric_limits<float>::denorm_min();
  EXPECT_EQ(float_op(PGR_OP_ADD, PGR_DTYPE_F32, {smallest, smallest}), 2 * smallest);
  EXPECT_EQ(float_op(PGR_OP_MUL, PGR_DTYPE_F16, {std::ldexp(1, -14), 0.5}), std::ldexp(1, -15));
}

TEST(FloatEdge, ComparisonsWithNan) {
  EXPECT_FALSE(float_compare(PGR_OP_CMPLT, PGR_DTYPE_F32, kNan, 1));
  EXPECT_FALSE(float_compare(PGR_OP_CMPEQ, PGR_DTYPE_F16, kNan, kNan));
  EXPECT_TRUE(float_compare(PGR_OP_CMPNE, PGR_DTYPE_F64, kNan, kNan));
  EXPECT_TRUE(float_compare(PGR_OP_CMPEQ, PGR_DTYPE_F32, 0.0, -0.0));
  EXPECT_FALSE(float_compare(PGR_OP_CMPLT, PGR_DTYPE_F32, -0.0, 0.0));
}

TEST(FloatRounding, EveryOperationRoundsToItsOwnFormat) {
  EXPECT_EQ(float_op(PGR_OP_ADD, PGR_DTYPE_F16, {2048, 1}), 2048);
  EXPECT_EQ(float_op(PGR_OP_ADD, PGR_DTYPE_F16, {2048, 3}), 2052);
  EXPECT_EQ(float_op(PGR_OP_ADD, PGR_DTYPE_BF16, {256, 1}), 256);
  EXPECT_EQ(float_op(PGR_OP_MUL, PGR_DTYPE_F16, {300, 300}), kInf);
  EXPECT_EQ(float_op(PGR_OP_FDIV, PGR_DTYPE_F32, {1, 3}), static_cast<double>(1.0f / 3.0f));
}

TEST(FloatRounding, FmaRoundsOnce) {
  const double e = std::ldexp(1, -12);
  // (1+e)^2 = 1 + 2e + e^2; subtracting 1 + 2e leaves e^2, which a rounded product has lost.
  EXPECT_EQ(float_op(PGR_OP_FMA, PGR_DTYPE_F32, {1 + e, 1 + e, -(1 + 2 * e)}), e * e);
  // 259 is half way between 258 and 260, which is even; the addend is far too small for a double
  // sum.
  EXPECT_EQ(float_op(PGR_OP_FMA, PGR_DTYPE_BF16, {7, 37, 0}), 260);
  EXPECT_EQ(float_op(PGR_OP_FMA, PGR_DTYPE_BF16, {7, 37, -std::ldexp(1, -120)}), 258);
  EXPECT_EQ(float_op(PGR_OP_FMA, PGR_DTYPE_F16, {3, 683, -std::ldexp(1, -24)}), 2048);
}

__extension__ using Int128 = __int128;

// An independent computation: exact 128-bit integers, scaled by 2^48.
double exact_fma_f16(double a, double b, double c) {
  const double scale = std::ldexp(1.0, 24);
  const Int128 sum = static_cast<Int128>(a * scale) * static_cast<Int128>(b * scale) +
                     static_cast<Int128>(c * scale) * (Int128{1} << 24);
  // The nearest f16, found by trying both neighbours of an estimate.
  const double guess = static_cast<double>(sum) / scale / scale;
  const uint64_t bits = encode_float(PGR_DTYPE_F16, guess);
  double best = 0;
  Int128 best_error = -1;
  uint64_t best_bits = 0;
  for (uint64_t candidate : {bits - 1, bits, bits + 1}) {
    const double value = decode_float(PGR_DTYPE_F16, candidate & 0xffff);
    if (!std::isfinite(value)) continue;
    Int128 error = static_cast<Int128>(value * scale) * (Int128{1} << 24) - sum;
    if (error < 0) error = -error;
    const bool wins = best_error < 0 || error < best_error ||
                      (error == best_error && (candidate & 1) == 0 && (best_bits & 1) == 1);
    if (wins) best = value, best_error = error, best_bits = candidate;
  }
  return best;
}

TEST(FloatRounding, F16FmaAgreesWithExactArithmetic) {
  uint64_t state = 12345;
  auto next = [&state] {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 40;
  };
  for (int i = 0; i < 3000; ++i) {
    // Magnitudes from 2^-14 to below 2^6, so that nothing overflows.
    auto draw = [&] { return ((next() % 20) + 1) << 10 | (next() & 0x3ff) | (next() & 1) << 15; };
    const double a = decode_float(PGR_DTYPE_F16, draw()), b = decode_float(PGR_DTYPE_F16, draw()),
                 c = decode_float(PGR_DTYPE_F16, draw());
    const double exact = exact_fma_f16(a, b, c);
    if (exact == 0) continue;
    ASSERT_EQ(float_op(PGR_OP_FMA, PGR_DTYPE_F16, {a, b, c}), exact)
        << a << " * " << b << " + " << c;
  }
}

TEST(Vectors, OneLaneCombinesWithAll) {
  IrBuilder b("k");
  auto out = b.buffer(PGR_DTYPE_I32, 4);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0), ten = b.constant_int(PGR_DTYPE_I32, 10);
  auto one = b.constant_int(PGR_DTYPE_I32, 1), two = b.constant_int(PGR_DTYPE_I32, 2);
  auto pair = b.vector({one, two});
  auto four = b.vector({pair, b.alu(PGR_OP_MUL, {pair, ten})});
  auto sum = b.alu(PGR_OP_ADD, {four, b.lane(four, 3)});
  b.store(out, zero, sum);
  int32_t memory[4];
  run_kernel(b, {{memory, sizeof memory}});
  EXPECT_EQ(std::vector(memory, memory + 4), (std::vector{21, 22, 30, 40}));
}

TEST(Vectors, WhereTakesLaneByLane) {
  IrBuilder b("k");
  auto out = b.buffer(PGR_DTYPE_I32, 2);
  auto zero = b.constant_int(PGR_DTYPE_I32, 0), five = b.constant_int(PGR_DTYPE_I32, 5);
  auto v = b.vector({zero, five});
  auto small = b.alu(PGR_OP_CMPLT, {v, five});
  b.store(out, zero, b.alu(PGR_OP_WHERE, {small, b.constant_int(PGR_DTYPE_I32, -1), v}));
  int32_t memory[2];
  run_kernel(b, {{memory, sizeof memory}});
  EXPECT_EQ(memory[0], -1);
  EXPECT_EQ(memory[1], 5);
}

}  // namespace
}  // namespace plugrad::sdk
