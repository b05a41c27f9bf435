// Tests sums, dot products and maxima over rows of many lengths. Detects a single large error as
// well as a small bias of all outputs.
#include <fmt/format.h>

#include <cmath>

#include "conformance/kernels/shapes/shapes.h"

namespace plugrad::conformance {
namespace {

// out[row] = Σ over k of a[row, k] * b[row, k], one group a row, summed in order.
Bytes dot_block(uint32_t dtype, int64_t rows, int64_t length) {
  IrBuilder ir("dot");
  ir.set_groups(static_cast<uint64_t>(rows));
  const auto count = static_cast<uint64_t>(rows * length);
  const Value a = ir.buffer(dtype, count, kInput), b = ir.buffer(dtype, count, kInput);
  const Value output = ir.buffer(dtype, static_cast<uint64_t>(rows), kOutput);
  const Value sum = ir.array(PGR_SPACE_PRIVATE, dtype, 1), zero = index_constant(ir, 0);
  ir.store(sum, zero, ir.cast(zero, dtype));
  const Value row = ir.group_id(0);
  const Value base = ir.alu(PGR_OP_MUL, {row, index_constant(ir, length)});
  const Value k = ir.loop(zero, index_constant(ir, length));
  const Value at = ir.alu(PGR_OP_ADD, {base, k});
  const Value product = ir.alu(PGR_OP_MUL, {ir.load(a, at), ir.load(b, at)});
  ir.store(sum, zero, ir.alu(PGR_OP_ADD, {ir.load(sum, zero), product}));
  ir.end_loop(k);
  ir.store(output, row, ir.load(sum, zero));
  return ir.finish();
}

struct DotData {
  std::vector<uint64_t> a, b, got;
};

DotData run_dot(Context& context, uint32_t dtype, int64_t rows, int64_t length,
                uint64_t (*value)(uint32_t, Random&)) {
  Random random(context.seed());
  DotData data;
  for (int64_t i = 0; i < rows * length; ++i) {
    data.a.push_back(value(dtype, random));
    data.b.push_back(value(dtype, random));
  }
  std::vector<Bytes> buffers = {pack(dtype, data.a), pack(dtype, data.b),
                                pack(dtype, std::vector<uint64_t>(static_cast<size_t>(rows)))};
  run_block(context, dot_block(dtype, rows, length), buffers);
  data.got = unpack(dtype, buffers[2]);
  return data;
}

void check_exact(const DotData& data, uint32_t dtype, size_t length) {
  const Operation mul = make_operation(PGR_OP_MUL, dtype), add = make_operation(PGR_OP_ADD, dtype);
  std::vector<uint64_t> want(data.got.size());
  for (size_t i = 0; i < data.a.size(); ++i) {
    const uint64_t product = expected_result(mul, std::vector{data.a[i], data.b[i]}).bits;
    uint64_t& sum = want[i / length];
    sum = expected_result(add, std::vector{sum, product}).bits;
  }
  expect_equal(dtype, want, data.got, fmt::format("dot products of {} terms", length));
}

void check_bounded(Context& context, const DotData& data, uint32_t dtype, size_t length) {
  for (size_t row = 0; row < data.got.size(); ++row) {
    ExactDot exact(dtype);
    for (size_t k = row * length; k < (row + 1) * length; ++k) exact.add(data.a[k], data.b[k]);
    const double error = exact.error_over_bound(data.got[row], 2 * length);
    context.measure("error/bound", error, fmt::format("row {} of {} terms", row, length));
    expect(error <= 1, fmt::format("a dot product of {} terms is {}, {:.3g} times the error that "
                                   "rounding each step may cost",
                                   length, describe(dtype, data.got[row]), error));
  }
}

void run_lengths(Context& context, uint32_t dtype) {
  for (int64_t length : {1, 2, 3, 17, 257}) {
    const DotData data = run_dot(context, dtype, length == 257 ? 3 : 31, length, tame_value);
    if (is_float(dtype))
      check_bounded(context, data, dtype, static_cast<size_t>(length));
    else
      check_exact(data, dtype, static_cast<size_t>(length));
  }
}

uint64_t positive_value(uint32_t dtype, Random& random) {
  return tame_value(dtype, random) & ~format_of(dtype).sign_bit();
}

// Round-to-nearest is unbiased: the mean error of many sums is near 0; truncation would give
// -length/4.
void run_bias(Context& context, uint32_t dtype) {
  constexpr size_t kRows = 512, kLength = 96;
  const DotData data = run_dot(context, dtype, kRows, kLength, positive_value);
  double mean = 0;
  for (size_t row = 0; row < kRows; ++row) {
    ExactDot exact(dtype);
    for (size_t k = row * kLength; k < (row + 1) * kLength; ++k) exact.add(data.a[k], data.b[k]);
    mean += exact.signed_error(data.got[row]) / kRows;
  }
  // The standard deviation of this mean is below 0.2.
  constexpr double kAllowed = 2;
  context.measure("bias", std::fabs(mean), fmt::format("{} sums of {} terms", kRows, kLength));
  expect(std::fabs(mean) <= kAllowed,
         fmt::format("the errors of {} sums lean one way: their mean is {:.3g} u·Σ|a·b|, allowed "
                     "is {}",
                     kRows, mean, kAllowed));
}

// The largest of each row; rows with a NaN give NaN.
void run_max(Context& context, uint32_t dtype) {
  constexpr int64_t kRows = 40, kLength = 37;
  IrBuilder ir("row_max");
  ir.set_groups(kRows);
  const Value input = ir.buffer(dtype, kRows * kLength, kInput);
  const Value output = ir.buffer(dtype, kRows, kOutput);
  const Value best = ir.array(PGR_SPACE_PRIVATE, dtype, 1), zero = index_constant(ir, 0);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kLength)});
  ir.store(best, zero, ir.load(input, base));
  const Value k = ir.loop(index_constant(ir, 1), index_constant(ir, kLength));
  const Value value = ir.load(input, ir.alu(PGR_OP_ADD, {base, k}));
  ir.store(best, zero, ir.alu(PGR_OP_MAX, {ir.load(best, zero), value}));
  ir.end_loop(k);
  ir.store(output, ir.group_id(0), ir.load(best, zero));
  Random random(context.seed());
  std::vector<uint64_t> values = tame_values(dtype, kRows * kLength, random), want;
  if (is_float(dtype))
    for (size_t row = 0; row < kRows; row += 3)
      values[row * kLength + random() % kLength] = format_of(dtype).nan();
  const Operation max = make_operation(PGR_OP_MAX, dtype);
  for (size_t row = 0; row < kRows; ++row) {
    uint64_t most = values[row * kLength];
    for (size_t i = 1; i < kLength; ++i)
      most = expected_result(max, std::vector{most, values[row * kLength + i]}).bits;
    want.push_back(most);
  }
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, std::vector<uint64_t>(kRows))};
  run_block(context, ir.finish(), buffers);
  expect_equal(dtype, want, unpack(dtype, buffers[1]), "the largest of each row");
}

void add_reduction(Tests& tests, const char* name, uint32_t dtype,
                   void (*run)(Context&, uint32_t)) {
  Test test;
  test.id = "l2.reduce." + std::string(name) + "." + id_of_dtype(dtype);
  test.level = Level::L2;
  test.run = [dtype, run](Context& context) { run(context, dtype); };
  tests.push_back(std::move(test));
}

}  // namespace

ExactDot::ExactDot(uint32_t dtype) : dtype_(dtype), sum_(256), magnitude_(128) {
  mpfr_set_zero(sum_, 1);
  mpfr_set_zero(magnitude_, 1);
}

void ExactDot::add(uint64_t a, uint64_t b) {
  Real x, y, product(128);
  set_value(x, dtype_, a);
  set_value(y, dtype_, b);
  mpfr_mul(product, x, y, MPFR_RNDN);
  mpfr_add(sum_, sum_, product, MPFR_RNDN);
  mpfr_abs(product, product, MPFR_RNDN);
  mpfr_add(magnitude_, magnitude_, product, MPFR_RNDN);
}

double ExactDot::distance(uint64_t got) const {
  if (is_nan(dtype_, got) || is_infinite(dtype_, got)) return HUGE_VAL;
  Real value, difference(256);
  set_value(value, dtype_, got);
  mpfr_sub(difference, value, sum_, MPFR_RNDN);
  return mpfr_get_d(difference, MPFR_RNDN);
}

double ExactDot::signed_error(uint64_t got) const {
  const double unit = std::ldexp(1.0, -format_of(dtype_).precision());
  const double magnitude = mpfr_get_d(magnitude_, MPFR_RNDN);
  const double error = distance(got);
  return magnitude == 0 ? (error == 0 ? 0 : HUGE_VAL) : error / (unit * magnitude);
}

double ExactDot::error_over_bound(uint64_t got, size_t n) const {
  return std::fabs(signed_error(got)) / static_cast<double>(n);
}

void add_reduction_tests(Tests& tests) {
  for (uint32_t dtype = PGR_DTYPE_I8; dtype <= PGR_DTYPE_F64; ++dtype) {
    add_reduction(tests, "dot", dtype, run_lengths);
    add_reduction(tests, "max", dtype, run_max);
    if (is_float(dtype)) add_reduction(tests, "bias", dtype, run_bias);
  }
}

}  // namespace plugrad::conformance
