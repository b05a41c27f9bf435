// Tests the suite's reference values against independent values, and its judge with wrong results.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <fstream>
#include <sstream>

#include "conformance/numbers/inputs.h"
#include "conformance/numbers/judge.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

uint64_t bits(float value) {
  return std::bit_cast<uint32_t>(value);
}
uint64_t bits(double value) {
  return std::bit_cast<uint64_t>(value);
}
uint64_t apply(uint32_t op, uint32_t dtype, std::vector<uint64_t> sources) {
  return expected_result(make_operation(op, dtype), sources).bits;
}
uint64_t cast(uint32_t from, uint32_t to, uint64_t source) {
  return expected_result({PGR_OP_CAST, from, to}, std::vector{source}).bits;
}
bool is_unspecified(uint32_t from, uint32_t to, uint64_t source) {
  return expected_result({PGR_OP_CAST, from, to}, std::vector{source}).is_unspecified;
}

pgr_device_caps make_caps(uint32_t denormals = PGR_DENORMALS_PRESERVE, uint32_t division = 0) {
  pgr_device_caps caps;
  PGR_INIT(caps, DEVICE_CAPS);
  caps.denormals = denormals;
  caps.division = division;
  return caps;
}

struct UnaryRow {
  uint32_t op, dtype;
  uint64_t source, result;
};

// From published tables, rounded by hand to the formats.
TEST(Reference, GivesKnownValuesOfFunctions) {
  const UnaryRow rows[] = {
      {PGR_OP_EXP2, PGR_DTYPE_F32, 0x3f000000, 0x3fb504f3},  // 2^(1/2) = 1.41421356…
      {PGR_OP_EXP2, PGR_DTYPE_F32, 0xc3150000, 0x00000001},  // 2^-149, the smallest
      {PGR_OP_EXP2, PGR_DTYPE_F32, 0x43000000, 0x7f800000},  // 2^128
      {PGR_OP_EXP2, PGR_DTYPE_F32, 0xff800000, 0x00000000},
      {PGR_OP_EXP2, PGR_DTYPE_F16, 0x3800, 0x3da8},          // 1.4140625
      {PGR_OP_EXP2, PGR_DTYPE_BF16, 0x3f00, 0x3fb5},         // 1.4140625
      {PGR_OP_LOG2, PGR_DTYPE_F32, 0x40400000, 0x3fcae00d},  // log2 3 = 1.5849625…
      {PGR_OP_LOG2, PGR_DTYPE_F32, 0x80000000, 0xff800000},
      {PGR_OP_LOG2, PGR_DTYPE_F32, 0x00000001, 0xc3150000},
      {PGR_OP_SIN, PGR_DTYPE_F32, 0x3f800000, 0x3f576aa4},  // sin 1 = 0.84147098…
      {PGR_OP_SIN, PGR_DTYPE_F32, 0x80000000, 0x80000000},
      {PGR_OP_SIN, PGR_DTYPE_F64, bits(1e22), bits(-0.8522008497671888)},
      {PGR_OP_SQRT, PGR_DTYPE_F32, 0x40000000, 0x3fb504f3},
      {PGR_OP_SQRT, PGR_DTYPE_F32, 0x80000000, 0x80000000},
      {PGR_OP_RECIP, PGR_DTYPE_F32, 0x40400000, 0x3eaaaaab},  // 1/3
      {PGR_OP_RECIP, PGR_DTYPE_F32, 0x80000000, 0xff800000},
      {PGR_OP_RECIP, PGR_DTYPE_F16, 0x4200, 0x3555},
      {PGR_OP_TRUNC, PGR_DTYPE_F32, bits(-0.75f), 0x80000000},
      {PGR_OP_TRUNC, PGR_DTYPE_F64, bits(-2.75), bits(-2.0)},
      {PGR_OP_NEG, PGR_DTYPE_F32, 0x7fc00000, 0xffc00000},
      {PGR_OP_NEG, PGR_DTYPE_I8, 0x80, 0x80},
      {PGR_OP_NEG, PGR_DTYPE_U16, 1, 0xffff},
  };
  for (const UnaryRow& row : rows)
    EXPECT_EQ(apply(row.op, row.dtype, {row.source}), row.result)
        << sdk::op_info(row.op)->name << " " << describe(row.dtype, row.source);
}

TEST(Reference, GivesIntegersAsDocumented) {
  const uint64_t minus7 = 0xf9, minus1 = 0xff, lowest = 0x80;
  EXPECT_EQ(apply(PGR_OP_IDIV, PGR_DTYPE_I8, {minus7, 2}), 0xfdu);
  EXPECT_EQ(apply(PGR_OP_MOD, PGR_DTYPE_I8, {minus7, 2}), minus1);
  EXPECT_EQ(apply(PGR_OP_IDIV, PGR_DTYPE_I8, {5, 0}), 0u);
  EXPECT_EQ(apply(PGR_OP_MOD, PGR_DTYPE_I8, {5, 0}), 5u);
  EXPECT_EQ(apply(PGR_OP_IDIV, PGR_DTYPE_I8, {lowest, minus1}), lowest);
  EXPECT_EQ(apply(PGR_OP_MOD, PGR_DTYPE_I8, {lowest, minus1}), 0u);
  EXPECT_EQ(apply(PGR_OP_SHR, PGR_DTYPE_I8, {minus7, 8}), minus1);
  EXPECT_EQ(apply(PGR_OP_SHR, PGR_DTYPE_I8, {minus7, 1}), 0xfcu);
  EXPECT_EQ(apply(PGR_OP_SHR, PGR_DTYPE_U8, {minus7, 1}), 0x7cu);
  EXPECT_EQ(apply(PGR_OP_SHL, PGR_DTYPE_I8, {1, minus1}), 0u);
  EXPECT_EQ(apply(PGR_OP_SHL, PGR_DTYPE_U64, {3, 63}), uint64_t{1} << 63);
  EXPECT_EQ(apply(PGR_OP_MUL, PGR_DTYPE_I64, {~uint64_t{0}, 3}), ~uint64_t{0} - 2);
  EXPECT_EQ(apply(PGR_OP_MUL, PGR_DTYPE_U64, {uint64_t{1} << 63, 3}), uint64_t{1} << 63);
  EXPECT_EQ(apply(PGR_OP_CMPLT, PGR_DTYPE_I8, {lowest, 1}), 1u);
  EXPECT_EQ(apply(PGR_OP_CMPLT, PGR_DTYPE_U8, {lowest, 1}), 0u);
  EXPECT_EQ(apply(PGR_OP_MAX, PGR_DTYPE_BOOL, {0, 1}), 1u);
}

TEST(Reference, CastsAsDocumented) {
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_F16, bits(65519.99f)), 0x7bffu);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_F16, bits(65520.0f)), 0x7c00u);
  EXPECT_EQ(cast(PGR_DTYPE_I32, PGR_DTYPE_F16, 65520), 0x7c00u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_F8E4M3, bits(464.0f)), 0x7eu);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_F8E4M3, bits(465.0f)), 0x7fu);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_F8E5M2, bits(-61440.0f)), 0xfcu);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BF16, 0x3f808000), 0x3f80u);  // ties to even
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BF16, 0x3f818000), 0x3f82u);
  // Rounding through f32 would give a tie and round down.
  EXPECT_EQ(cast(PGR_DTYPE_F64, PGR_DTYPE_BF16, bits(1.0 + 0x1p-8 + 0x1p-40)), 0x3f81u);
  EXPECT_EQ(cast(PGR_DTYPE_I64, PGR_DTYPE_F32, (uint64_t{1} << 60) + (uint64_t{1} << 36) + 1),
            bits(0x1.000002p60f));
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_I8, bits(-128.9f)), 0x80u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_U8, bits(-0.9f)), 0u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_U64, bits(0x1.fffffep63f)), uint64_t{0xffffff} << 40);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BOOL, 0x7fc00000), 1u);
  EXPECT_EQ(cast(PGR_DTYPE_F32, PGR_DTYPE_BOOL, 0x80000000), 0u);
  EXPECT_EQ(cast(PGR_DTYPE_I16, PGR_DTYPE_U64, 0xffff), ~uint64_t{0});
  EXPECT_TRUE(is_unspecified(PGR_DTYPE_F32, PGR_DTYPE_I8, bits(128.0f)));
  EXPECT_TRUE(is_unspecified(PGR_DTYPE_F32, PGR_DTYPE_U8, bits(-1.0f)));
  EXPECT_TRUE(is_unspecified(PGR_DTYPE_F64, PGR_DTYPE_U64, bits(0x1p64)));
  EXPECT_TRUE(is_unspecified(PGR_DTYPE_F64, PGR_DTYPE_I64, bits(std::nan(""))));
  EXPECT_FALSE(is_unspecified(PGR_DTYPE_F64, PGR_DTYPE_I64, bits(-0x1p63)));
}

// The machine's IEEE arithmetic is an independent reference for f32 and f64.
template <typename T>
void compare_with_processor(uint32_t dtype) {
  Random random(7);
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  for (int i = 0; i < 20000; ++i) {
    const auto a = any_value(dtype, random), b = any_value(dtype, random);
    const auto c = any_value(dtype, random);
    const T x = std::bit_cast<T>(static_cast<Bits>(a)), y = std::bit_cast<T>(static_cast<Bits>(b));
    const T z = std::bit_cast<T>(static_cast<Bits>(c));
    const std::pair<uint64_t, T> results[] = {
        {apply(PGR_OP_ADD, dtype, {a, b}), x + y},
        {apply(PGR_OP_SUB, dtype, {a, b}), x - y},
        {apply(PGR_OP_MUL, dtype, {a, b}), x * y},
        {apply(PGR_OP_FDIV, dtype, {a, b}), x / y},
        {apply(PGR_OP_SQRT, dtype, {a}), std::sqrt(x)},
        {apply(PGR_OP_FMA, dtype, {a, b, c}), std::fma(x, y, z)},
        {apply(PGR_OP_TRUNC, dtype, {a}), std::trunc(x)}};
    for (const auto& [got, want] : results) {
      if (std::isnan(want))
        ASSERT_TRUE(is_nan(dtype, got)) << x << " " << y << " " << z;
      else
        ASSERT_EQ(got, bits(want)) << x << " " << y << " " << z;
    }
  }
}

TEST(Reference, AgreesWithTheProcessorInF32) {
  compare_with_processor<float>(PGR_DTYPE_F32);
}
TEST(Reference, AgreesWithTheProcessorInF64) {
  compare_with_processor<double>(PGR_DTYPE_F64);
}

TEST(Reference, CastsF64ToF32AsTheProcessor) {
  Random random(8);
  for (int i = 0; i < 20000; ++i) {
    // Exponents near those of f32, so that few values are zero or infinite.
    const uint64_t source = (random() & 0x800fffffffffffff) | (random() % 300 + 873) << 52;
    const auto want = static_cast<float>(std::bit_cast<double>(source));
    ASSERT_EQ(cast(PGR_DTYPE_F64, PGR_DTYPE_F32, source), bits(want)) << std::hex << source;
  }
}

// A cast to f64 and back keeps every value of the small formats.
TEST(Reference, SmallFloatsSurviveAWiderFormat) {
  for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F8E4M3, PGR_DTYPE_F8E5M2})
    for (uint64_t value : all_values(dtype)) {
      if (is_nan(dtype, value)) continue;
      const uint64_t wide = cast(dtype, PGR_DTYPE_F64, value);
      ASSERT_EQ(cast(PGR_DTYPE_F64, dtype, wide), value) << describe(dtype, value);
    }
}

std::vector<Operation> all_operations() {
  std::vector<Operation> all;
  for (const sdk::OpInfo& op : sdk::all_ops())
    for (uint32_t from = 0; from < PGR_DTYPE_COUNT; ++from)
      for (uint32_t to = 0; to < PGR_DTYPE_COUNT; ++to)
        if (op.op_class == PGR_OP_CLASS_ALU && is_operation(op.number, from, to))
          all.push_back({op.number, from, to});
  return all;
}

TEST(Judge, AcceptsTheExpectedResultOfEveryOperation) {
  Random random(1);
  for (const Operation& o : all_operations()) {
    const Judge judge(o, make_caps());
    const Cases cases = make_cases(o, 50, random);
    for (size_t i = 0; i < cases.size(); i += 1 + cases.size() / 300) {
      const auto sources = cases.at(i);
      const Expected expected = expected_result(o, sources);
      if (expected.is_unspecified) continue;
      ASSERT_TRUE(judge.judge(sources, expected.bits).is_right)
          << judge.explain(sources, expected.bits);
    }
  }
}

// Just outside the tolerance.
uint64_t spoiled(const Operation& o, uint64_t expected, double tolerance) {
  if (o.to == PGR_DTYPE_BOOL) return expected ^ 1;
  const uint64_t steps = static_cast<uint64_t>(tolerance) + 2;
  const uint64_t mask = ~uint64_t{0} >> (64 - width_of(o.to));
  return (tolerance == 0 ? expected ^ 1 : expected + 2 * steps) & mask;
}

TEST(Judge, SeesAWrongResultOfEveryOperation) {
  Random random(2);
  for (const Operation& o : all_operations()) {
    const Judge judge(o, make_caps());
    size_t seen = 0;
    const Cases cases = make_cases(o, 50, random);
    for (size_t i = 0; i < cases.size(); i += 1 + cases.size() / 100) {
      const auto sources = cases.at(i);
      const Expected expected = expected_result(o, sources);
      if (expected.is_unspecified) continue;
      const uint64_t wrong = spoiled(o, expected.bits, judge.tolerance());
      if (is_float(o.to) && o.op != PGR_OP_BITCAST &&
          (is_nan(o.to, expected.bits) || is_nan(o.to, wrong) || is_infinite(o.to, expected.bits)))
        continue;
      ASSERT_FALSE(judge.judge(sources, wrong).is_right) << judge.explain(sources, wrong);
      ++seen;
    }
    EXPECT_GT(seen, 0u) << sdk::op_info(o.op)->name << " " << sdk::dtype_name(o.from);
  }
}

Verdict judge(uint32_t op, uint32_t dtype, std::vector<uint64_t> sources, uint64_t got,
              const pgr_device_caps& caps = make_caps()) {
  return Judge(make_operation(op, dtype), caps).judge(sources, got);
}

TEST(Judge, SeesSignsOfZeroAndNaN) {
  const uint64_t plus = 0, minus = 0x80000000, nan = 0x7fc00000;
  EXPECT_FALSE(judge(PGR_OP_ADD, PGR_DTYPE_F32, {minus, plus}, minus).is_right);
  EXPECT_TRUE(judge(PGR_OP_ADD, PGR_DTYPE_F32, {minus, minus}, minus).is_right);
  EXPECT_TRUE(judge(PGR_OP_MAX, PGR_DTYPE_F32, {minus, plus}, minus).is_right);
  EXPECT_TRUE(judge(PGR_OP_MAX, PGR_DTYPE_F32, {minus, plus}, plus).is_right);
  EXPECT_FALSE(judge(PGR_OP_MAX, PGR_DTYPE_F32, {nan, plus}, plus).is_right);
  EXPECT_FALSE(judge(PGR_OP_SIN, PGR_DTYPE_F32, {minus}, plus).is_right);
  EXPECT_TRUE(judge(PGR_OP_ADD, PGR_DTYPE_F32, {nan, plus}, 0xffc00001).is_right);
  EXPECT_FALSE(judge(PGR_OP_NEG, PGR_DTYPE_F32, {nan}, nan).is_right);
  EXPECT_TRUE(judge(PGR_OP_NEG, PGR_DTYPE_F32, {nan}, 0xffc00000).is_right);
}

TEST(Judge, TakesDenormalsAsTheDeviceSays) {
  const uint64_t tiny = 0x00400000, small = 0x00800000, half = 0x3f000000, one = 0x3f800000;
  for (const auto& [denormals, kept, flushed] : {std::tuple{PGR_DENORMALS_PRESERVE, true, false},
                                                 {PGR_DENORMALS_FLUSH, false, true},
                                                 {PGR_DENORMALS_UNSPECIFIED, true, true}}) {
    const auto caps = make_caps(denormals);
    EXPECT_EQ(judge(PGR_OP_MUL, PGR_DTYPE_F32, {tiny, one}, tiny, caps).is_right, kept);
    EXPECT_EQ(judge(PGR_OP_MUL, PGR_DTYPE_F32, {tiny, one}, 0, caps).is_right, flushed);
    EXPECT_EQ(judge(PGR_OP_MUL, PGR_DTYPE_F32, {small, half}, 0, caps).is_right, flushed);
    EXPECT_FALSE(judge(PGR_OP_MUL, PGR_DTYPE_F32, {one, half}, 0, caps).is_right);
    EXPECT_FALSE(judge(PGR_OP_MUL, PGR_DTYPE_F16, {1, 0x3c00}, 0, caps).is_right);
  }
}

// Only flushed values may lose their sign: -0.5 truncated and -1 * 0 are zeros by themselves.
TEST(Judge, SeesSignsOfZerosThatWereNotFlushed) {
  const uint64_t minus = 0x80000000, minus_half = 0xbf000000, minus_one = 0xbf800000;
  const uint64_t minus_tiny = 0x80400000;
  for (auto denormals : {PGR_DENORMALS_PRESERVE, PGR_DENORMALS_FLUSH, PGR_DENORMALS_UNSPECIFIED}) {
    const auto caps = make_caps(denormals);
    EXPECT_TRUE(judge(PGR_OP_TRUNC, PGR_DTYPE_F32, {minus_half}, minus, caps).is_right);
    EXPECT_FALSE(judge(PGR_OP_TRUNC, PGR_DTYPE_F32, {minus_half}, 0, caps).is_right);
    EXPECT_TRUE(judge(PGR_OP_MUL, PGR_DTYPE_F32, {minus_one, 0}, minus, caps).is_right);
    EXPECT_FALSE(judge(PGR_OP_MUL, PGR_DTYPE_F32, {minus_one, 0}, 0, caps).is_right);
    const bool may_flush = denormals != PGR_DENORMALS_PRESERVE;
    EXPECT_EQ(judge(PGR_OP_MUL, PGR_DTYPE_F32, {minus_tiny, minus_tiny}, minus, caps).is_right,
              may_flush);
  }
}

TEST(Judge, MeasuresInUnitsOfTheLastPlace) {
  const Verdict verdict = judge(PGR_OP_EXP2, PGR_DTYPE_F32, {0x3f000000}, 0x3fb504f3 + 2);
  EXPECT_TRUE(verdict.is_right);
  EXPECT_NEAR(verdict.ulp, 2.0, 0.51);
  EXPECT_FALSE(judge(PGR_OP_EXP2, PGR_DTYPE_F32, {0x3f000000}, 0x3fb504f3 + 5).is_right);
  EXPECT_FALSE(judge(PGR_OP_FDIV, PGR_DTYPE_F32, {0x3f800000, 0x40400000}, 0x3eaaaaaa).is_right);
  const auto caps = make_caps(PGR_DENORMALS_PRESERVE, 3);
  EXPECT_TRUE(
      judge(PGR_OP_FDIV, PGR_DTYPE_F32, {0x3f800000, 0x40400000}, 0x3eaaaaaa, caps).is_right);
}

// docs/kernel-ir.md prints the table that the tests use.
TEST(AccuracyTable, StandsInTheDocuments) {
  std::ifstream file(PLUGRAD_KERNEL_IR_PAGE);
  std::ostringstream text;
  text << file.rdbuf();
  for (const AccuracyRow& row : accuracy_table()) {
    if (!is_operation(row.op, PGR_DTYPE_F32, make_operation(row.op, PGR_DTYPE_F32).to)) continue;
    std::string line = "| `" + std::string(sdk::op_info(row.op)->name) + "` |";
    for (uint32_t dtype : {PGR_DTYPE_F16, PGR_DTYPE_BF16, PGR_DTYPE_F32, PGR_DTYPE_F64})
      line += " " + accuracy_text(row.op, dtype) + " |";
    EXPECT_NE(text.str().find(line), std::string::npos) << "docs/kernel-ir.md lacks: " << line;
  }
}

}  // namespace
}  // namespace plugrad::conformance
