// Ops that a device does not claim are composed of claimed ops: against libm in double, on the
// interpreter, over all exponents, signs and the edges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <optional>

#include "ir/round.h"
#include "kernels.h"
#include "plugrad/error.h"
#include "run.h"

namespace plugrad::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// out[i] = op(a[i]), on a device that does not claim `lacking` for any dtype.
std::vector<float> unary_without(Op lacking, Op op, const std::vector<float>& in) {
  Ast ast;
  Graph& g = ast.graph;
  const auto n = static_cast<int64_t>(in.size());
  const Id i = make_range(g, n, 0, AxisKind::Loop);
  store(ast, param(g, 0, n, true), i, g.unary(op, load(g, param(g, 1, n, false), i)));
  pgr_device_caps caps = small_cpu();
  caps.op_dtypes[static_cast<size_t>(lacking)] = 0;
  std::vector<float> out(in.size()), copy = in;
  run(codegen::generate(g, ast.sink, caps, {.contract = false}), {&out, &copy});
  return out;
}

std::vector<float> unary_without_claim(Op op, const std::vector<float>& in) {
  return unary_without(op, op, in);
}

// Every exponent with several mantissas, both signs, and the edges; NaN of several payloads.
std::vector<float> all_magnitudes() {
  std::vector<float> out = {0.0f,  -0.0f, kInfinity, -kInfinity, kNaN,        1.0f,
                            -1.0f, 0.5f,  1e-45f,    3.4e38f,    0.70710678f, 0.70710677f};
  for (uint32_t exponent = 0; exponent < 256; ++exponent)
    for (uint32_t mantissa : {0u, 1u, 0x1234u, 0x3504f3u, 0x490fdbu, 0x7fffffu})
      for (uint32_t sign : {0u, 0x80000000u})
        out.push_back(std::bit_cast<float>(sign | exponent << 23 | mantissa));
  return out;
}

double ulp_error(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  const auto rounded = static_cast<float>(exact);
  if (std::isinf(rounded) || std::isinf(got)) return got == rounded ? 0 : 1e9;
  int exponent;
  std::frexp(rounded, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(got - exact) / ulp;
}

void expect_within(Op op, double (*exact)(double), double limit, const std::vector<float>& in,
                   std::optional<Op> lacking = {}) {
  const std::vector<float> out = unary_without(lacking.value_or(op), op, in);
  double worst = 0;
  for (size_t i = 0; i < in.size(); ++i) {
    const double error = ulp_error(out[i], exact(in[i]));
    EXPECT_LE(error, limit) << op_info(op).name << "(" << in[i] << ") gave " << out[i] << ", exact "
                            << exact(in[i]);
    worst = std::max(worst, error);
  }
  testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
}

TEST(Exp2, within_2_ulp_over_all_magnitudes) {
  std::vector<float> in = all_magnitudes();
  for (int i = -1600; i < 1300; ++i) in.push_back(static_cast<float>(i) * 0.1f);
  expect_within(Op::Exp2, [](double x) { return std::exp2(x); }, 2, in);
}

TEST(Exp, within_2_ulp_over_all_magnitudes) {
  std::vector<float> in = all_magnitudes();
  for (int i = -10500; i < 8900; ++i) in.push_back(static_cast<float>(i) * 0.01f);
  for (Op lacking : {Op::Exp2, Op::Sin})  // by a polynomial; by the device's exp2
    expect_within(Op::Exp, [](double x) { return std::exp(x); }, 2, in, lacking);
}

TEST(Log2, within_3_ulp_over_all_magnitudes) {
  std::vector<float> in = all_magnitudes();
  for (int i = 1; i < 4000; ++i) in.push_back(static_cast<float>(i) * 0.0005f);
  expect_within(Op::Log2, [](double x) { return std::log2(x); }, 3, in);
}

TEST(Sin, within_2_ulp_over_all_magnitudes) {
  std::vector<float> in = all_magnitudes();
  for (int i = -3000; i < 3000; ++i) in.push_back(static_cast<float>(i) * 0.7853981f);
  expect_within(Op::Sin, [](double x) { return std::sin(x); }, 2, in);
}

// out[i] = op(a[i]) in f64 without the claim, compared with the x87 format, which has 11 more bits.
double worst_error_f64(Op op, long double (*exact)(long double), std::vector<double> in,
                       std::optional<Op> lacking = {}) {
  Ast ast;
  Graph& g = ast.graph;
  const auto n = static_cast<int64_t>(in.size());
  const Id i = make_range(g, n, 0, AxisKind::Loop);
  store(ast, param(g, 0, n, true, DType::F64), i,
        g.unary(op, load(g, param(g, 1, n, false, DType::F64), i)));
  pgr_device_caps caps = small_cpu();
  caps.op_dtypes[static_cast<size_t>(lacking.value_or(op))] = 0;
  std::vector<double> out(in.size());
  const auto code = codegen::generate(g, ast.sink, caps, {.contract = false});
  run_buffers(code,
              {{out.data(), out.size() * sizeof(double)}, {in.data(), in.size() * sizeof(double)}});
  double worst = 0;
  for (size_t k = 0; k < in.size(); ++k) {
    const long double want = exact(static_cast<long double>(in[k]));
    if (std::isnan(want) || std::isinf(want) || std::isinf(out[k])) {
      EXPECT_TRUE(std::isnan(want) ? std::isnan(out[k]) : out[k] == static_cast<double>(want))
          << in[k] << " gave " << out[k];
      continue;
    }
    int exponent;
    std::frexp(static_cast<double>(want), &exponent);
    const long double error = std::fabs(static_cast<long double>(out[k]) - want) /
                              std::ldexp(1.0L, std::max(exponent - 53, -1074));
    EXPECT_LE(error, 3) << in[k] << " gave " << out[k];
    worst = std::max(worst, static_cast<double>(error));
  }
  testing::Test::RecordProperty("worst_ulp", std::to_string(worst));
  return worst;
}

std::vector<double> all_magnitudes_f64() {
  std::vector<double> out = {
      0.0,
      -0.0,
      kInfinity,
      -kInfinity,
      kNaN,
      1.0,
      0x1.921fb54442d18p+0,
      0x1.4p20,
      6381956970095103.0 * 0x1p797};  // the f64 closest to a multiple of pi/2
  for (uint64_t exponent = 0; exponent < 2048; ++exponent)
    for (uint64_t mantissa : {0ull, 1ull, 0x123456789abcdull, 0x6a09e667f3bcdull,
                              0x921fb54442d18ull, 0xfffffffffffffull})
      for (uint64_t sign : {0ull, 1ull})
        out.push_back(std::bit_cast<double>(sign << 63 | exponent << 52 | mantissa));
  for (int i = -2000; i < 2000; ++i) out.push_back(i * 0.78539816339744831);
  return out;
}

TEST(Float64, made_sin_is_within_3_ulp) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "long double is no wider than double";
  worst_error_f64(Op::Sin, [](long double x) { return std::sin(x); }, all_magnitudes_f64());
}
TEST(Float64, made_exp2_is_within_3_ulp) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "long double is no wider than double";
  std::vector<double> in = all_magnitudes_f64();
  for (int i = -11000; i < 10300; ++i) in.push_back(i * 0.1);
  worst_error_f64(Op::Exp2, [](long double x) { return std::exp2(x); }, in);
}
TEST(Float64, made_exp_is_within_3_ulp) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "long double is no wider than double";
  std::vector<double> in = all_magnitudes_f64();
  for (int i = -7500; i < 7100; ++i) in.push_back(i * 0.1);
  for (Op lacking : {Op::Exp2, Op::Sin})  // by a polynomial; by the device's exp2
    worst_error_f64(Op::Exp, [](long double x) { return std::exp(x); }, in, lacking);
}
TEST(Float64, made_log2_is_within_3_ulp) {
  if (std::numeric_limits<long double>::digits < 64)
    GTEST_SKIP() << "long double is no wider than double";
  std::vector<double> in = all_magnitudes_f64();
  for (int i = 1; i < 4000; ++i) in.push_back(i * 0.0005);
  worst_error_f64(Op::Log2, [](long double x) { return std::log2(x); }, in);
}

TEST(Sin, keeps_the_sign_of_zero) {
  const std::vector<float> out = unary_without_claim(Op::Sin, {0.0f, -0.0f});
  EXPECT_FALSE(std::signbit(out[0]));
  EXPECT_TRUE(std::signbit(out[1]));
}

TEST(Trunc, equals_libm_bit_for_bit) {
  const std::vector<float> in = all_magnitudes(), out = unary_without_claim(Op::Trunc, in);
  for (size_t i = 0; i < in.size(); ++i)
    if (!std::isnan(in[i])) {
      EXPECT_EQ(std::bit_cast<uint32_t>(out[i]), std::bit_cast<uint32_t>(std::trunc(in[i])))
          << in[i];
    }
}

TEST(Recip, comes_from_a_division) {
  const std::vector<float> out = unary_without_claim(Op::Recip, {2.0f, -4.0f, 0.0f, kInfinity});
  EXPECT_EQ(out[0], 0.5f);
  EXPECT_EQ(out[1], -0.25f);
  EXPECT_EQ(out[2], kInfinity);
  EXPECT_EQ(out[3], 0.0f);
}

// out[i] = max(max(a[i], b[i]), -a[i]) of bf16, on a device with f32 arithmetic only: no value is
// rounded, and none cast back in between.
TEST(Max, of_bf16_is_the_upper_half_of_an_f32) {
  const std::vector<uint16_t> a = {0x3f80, 0xbf80, 0x0001, 0x8001, 0xff80, 0x7fc1, 0x3f80, 0x7f7f};
  const std::vector<uint16_t> b = {0x4000, 0xc000, 0x8000, 0x0000, 0xff7f, 0x3f80, 0xffc2, 0x7f80};
  const std::vector<uint16_t> want = {0x4000, 0x3f80, 0x0001, 0x0001,
                                      0x7f80, 0x7fc1, 0xffc2, 0x7f80};
  Ast ast;
  Graph& g = ast.graph;
  const auto n = static_cast<int64_t>(a.size());
  const Id i = make_range(g, n, 0, AxisKind::Loop);
  const Id x = load(g, param(g, 1, n, false, DType::BF16), i),
           y = load(g, param(g, 2, n, false, DType::BF16), i);
  store(ast, param(g, 0, n, true, DType::BF16), i,
        g.binary(Op::Max, g.binary(Op::Max, x, y), g.unary(Op::Neg, x)));
  pgr_device_caps caps = small_cpu();
  for (Op op : {Op::Max, Op::Neg, Op::CmpLt})
    caps.op_dtypes[static_cast<size_t>(op)] &= ~(1u << PGR_DTYPE_BF16);
  const auto code = codegen::generate(g, ast.sink, caps, {});
  const sdk::IrView ir = sdk::decode_ir(code.ir);
  for (const pgr_ir_inst& inst : ir.insts())
    EXPECT_FALSE(inst.op == PGR_OP_CAST && inst.dtype == PGR_DTYPE_BF16);
  std::vector<uint16_t> out(a.size()), first = a, second = b;
  run_buffers(code, {{out.data(), 2 * out.size()},
                     {first.data(), 2 * first.size()},
                     {second.data(), 2 * second.size()}});
  for (size_t k = 0; k < want.size(); ++k) {
    if ((want[k] & 0x7fff) > 0x7f80)
      EXPECT_GT(out[k] & 0x7fff, 0x7f80) << k;
    else
      EXPECT_EQ(out[k], want[k]) << k;
  }
}

// out[i] = f32 of (small float of a[i]), on a device that claims no casts of small floats.
class SmallFloat : public testing::TestWithParam<DType> {};

TEST_P(SmallFloat, conversions_round_to_nearest_even_both_ways) {
  const DType dtype = GetParam();
  std::vector<float> in = all_magnitudes();
  for (int i = -5000; i < 5000; ++i) in.push_back(static_cast<float>(i) * 0.013f);
  Ast ast;
  Graph& g = ast.graph;
  const auto n = static_cast<int64_t>(in.size());
  const Id i = make_range(g, n, 0, AxisKind::Loop);
  const Id narrow = g.cast(load(g, param(g, 1, n, false), i), dtype);
  // A bitcast between the two casts keeps the simplifier from folding the pair.
  const DType bits = size_of(dtype) == 2 ? DType::U16 : DType::U8;
  const Id opaque =
      g.add(Op::Bitcast, dtype,
            {g.binary(Op::Or, g.add(Op::Bitcast, bits, {narrow}), g.constant(bits, int64_t{0}))});
  store(ast, param(g, 0, n, true), i, g.cast(opaque, DType::F32));
  pgr_device_caps caps = small_cpu();
  caps.op_dtypes[PGR_OP_CAST] &= ~(1u << static_cast<uint32_t>(dtype));
  std::vector<float> out(in.size()), copy = in;
  run(codegen::generate(g, ast.sink, caps, {}), {&out, &copy});
  for (size_t k = 0; k < in.size(); ++k) {
    const double expected = round_float(in[k], dtype);
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(out[k])) << in[k] << " gave " << out[k];
    else
      EXPECT_EQ(out[k], static_cast<float>(expected)) << in[k] << " in " << name_of(dtype);
  }
}
INSTANTIATE_TEST_SUITE_P(formats, SmallFloat,
                         testing::Values(DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2),
                         [](const auto& row) { return std::string(name_of(row.param)); });

TEST(Max, takes_nan_from_either_side_without_the_claim) {
  Ast ast;
  Graph& g = ast.graph;
  const Id i = make_range(g, 4, 0, AxisKind::Loop);
  store(ast, param(g, 0, 4, true), i,
        g.binary(Op::Max, load(g, param(g, 1, 4, false), i), load(g, param(g, 2, 4, false), i)));
  pgr_device_caps caps = small_cpu();
  caps.op_dtypes[PGR_OP_MAX] = 0;
  std::vector<float> out(4), a = {1, kNaN, 3, -1}, b = {2, 1, kNaN, -2};
  run(codegen::generate(g, ast.sink, caps, {}), {&out, &a, &b});
  EXPECT_EQ(out[0], 2);
  EXPECT_TRUE(std::isnan(out[1]));
  EXPECT_TRUE(std::isnan(out[2]));
  EXPECT_EQ(out[3], -1);
}

TEST(Unsupported, names_op_and_dtype) {
  const Ast ast = add(4, DType::F64);
  pgr_device_caps caps = small_cpu();
  caps.op_dtypes[PGR_OP_ADD] &= ~(1u << PGR_DTYPE_F64);
  try {
    codegen::generate(ast.graph, ast.sink, caps, {});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::Unsupported);
    EXPECT_THAT(
        e.what(),
        testing::HasSubstr("the device has no Add for f64 and nothing to make it of; cast to f32"));
  }
}

}  // namespace
}  // namespace plugrad::test
