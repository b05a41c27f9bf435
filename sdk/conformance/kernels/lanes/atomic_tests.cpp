// Tests ATOMIC_ADD: many groups add to few elements, so that a lost addition is detected.
#include <fmt/format.h>

#include <cmath>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/lanes/lanes.h"

namespace plugrad::conformance {
namespace {

constexpr int64_t kAtomicGroups = 512, kAtomicSteps = 64, kPlaces = 5;
constexpr size_t kAdditions = kAtomicGroups * kAtomicSteps;

// place[i mod 5] += in[i], gated off for each i that is a multiple of 11.
Bytes scatter_block(uint32_t dtype) {
  IrBuilder ir("scatter");
  ir.set_groups(kAtomicGroups);
  const Value input = ir.buffer(dtype, kAdditions, kInput);
  const Value places = ir.buffer(dtype, kPlaces, kBoth);
  const Value base = ir.alu(PGR_OP_MUL, {ir.group_id(0), index_constant(ir, kAtomicSteps)});
  const Value loop = ir.loop(index_constant(ir, 0), index_constant(ir, kAtomicSteps));
  const Value at = ir.alu(PGR_OP_ADD, {base, loop});
  const Value place = ir.alu(PGR_OP_MOD, {at, index_constant(ir, kPlaces)});
  const Value rest = ir.alu(PGR_OP_MOD, {at, index_constant(ir, 11)});
  const Value gate = ir.alu(PGR_OP_CMPNE, {rest, index_constant(ir, 0)});
  const Value value = ir.load(input, at);
  ir.emit(PGR_OP_ATOMIC_ADD, PGR_DTYPE_VOID, 1, {places, place, value, gate});
  ir.end_loop(loop);
  return ir.finish();
}

// Integers wrap; so few floats are nonzero that all partial sums are exact in any order.
std::vector<uint64_t> exact_addends(uint32_t dtype, Random& random) {
  if (!is_float(dtype)) return mixed_values(dtype, kAdditions, random);
  const Format& f = format_of(dtype);
  const size_t exact = size_t{1} << (f.mantissa_bits - 1);
  const size_t every = kAdditions / kPlaces / exact + 1;
  const uint64_t one = static_cast<uint64_t>(f.bias()) << f.mantissa_bits;
  std::vector<uint64_t> values(kAdditions);
  for (uint64_t& value : values) value = random() % every == 0 ? one : 0;
  return values;
}

std::vector<uint64_t> sum_up(uint32_t dtype, const std::vector<uint64_t>& values) {
  std::vector<uint64_t> places(kPlaces);
  const Operation add = make_operation(PGR_OP_ADD, dtype);
  for (size_t i = 0; i < values.size(); ++i) {
    if (i % 11 == 0) continue;
    const uint64_t sources[] = {places[i % kPlaces], values[i]};
    places[i % kPlaces] = expected_result(add, sources).bits;
  }
  return places;
}

void run_scatter(Context& context, uint32_t dtype) {
  Random random(context.seed());
  const std::vector<uint64_t> values = exact_addends(dtype, random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, std::vector<uint64_t>(kPlaces))};
  run_block(context, scatter_block(dtype), buffers);
  expect_equal(dtype, sum_up(dtype, values), unpack(dtype, buffers[1]),
               fmt::format("sums of {} atomic additions", kAdditions));
}

// Sums with rounding: within n·u·Σ|x| in any order.
void run_rounding(Context& context, uint32_t dtype) {
  Random random(context.seed());
  const std::vector<uint64_t> values = tame_values(dtype, kAdditions, random);
  std::vector<Bytes> buffers = {pack(dtype, values), pack(dtype, std::vector<uint64_t>(kPlaces))};
  run_block(context, scatter_block(dtype), buffers);
  const std::vector<uint64_t> got = unpack(dtype, buffers[1]);
  const double unit = std::ldexp(1.0, -format_of(dtype).precision());
  for (size_t place = 0; place < kPlaces; ++place) {
    Real sum(128), magnitude(128), value;
    mpfr_set_zero(sum, 1);
    mpfr_set_zero(magnitude, 1);
    for (size_t i = place; i < kAdditions; i += kPlaces) {
      if (i % 11 == 0) continue;
      set_value(value, dtype, values[i]);
      mpfr_add(sum, sum, value, MPFR_RNDN);
      mpfr_abs(value, value, MPFR_RNDN);
      mpfr_add(magnitude, magnitude, value, MPFR_RNDN);
    }
    const double bound = unit * double(kAdditions) / kPlaces * mpfr_get_d(magnitude, MPFR_RNDN);
    set_value(value, dtype, got[place]);
    mpfr_sub(sum, sum, value, MPFR_RNDN);
    const double error = std::fabs(mpfr_get_d(sum, MPFR_RNDN));
    context.measure("error/bound", error / bound, fmt::format("place {}", place));
    expect(error <= bound,
           fmt::format("place {} is off by {:.3g}, allowed is {:.3g}", place, error, bound));
  }
}

void add_atomic(Tests& tests, const char* name, uint32_t dtype, void (*run)(Context&, uint32_t)) {
  Test test;
  test.op = "atomic_add";
  test.dtype = id_of_dtype(dtype);
  test.id = "l2.atomic." + std::string(name) + "." + test.dtype;
  test.level = Level::L2;
  test.run = [dtype, run](Context& context) { run(context, dtype); };
  tests.push_back(std::move(test));
}

}  // namespace

void add_atomic_tests(Tests& tests) {
  for (uint32_t dtype = PGR_DTYPE_I8; dtype <= PGR_DTYPE_F64; ++dtype)
    add_atomic(tests, "exact", dtype, run_scatter);
  for (uint32_t dtype : {PGR_DTYPE_F32, PGR_DTYPE_F64})
    add_atomic(tests, "rounds", dtype, run_rounding);
}

}  // namespace plugrad::conformance
