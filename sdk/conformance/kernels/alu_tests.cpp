// Tests every op on every dtype: out[i] = op(a[i], …) against MPFR and wide integers.
#include "conformance/kernels/elements.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kQuickCases = 4096, kDenseCases = 1 << 19;

void run_cases(Context& context, const Operation& o, size_t count) {
  Random random(context.seed());
  run_operation(context, o, make_cases(o, count, random));
}

// All bit patterns of an f32, in parts.
void run_exhaustive(Context& context, const Operation& o) {
  constexpr uint64_t kPart = uint64_t{1} << 22;
  for (uint64_t first = 0; first < uint64_t{1} << 32; first += kPart) {
    Cases cases;
    cases.columns.emplace_back(kPart);
    for (uint64_t i = 0; i < kPart; ++i) cases.columns[0][i] = first + i;
    run_operation(context, o, std::move(cases));
  }
}

Test make_test(const char* family, const Operation& o) {
  Test test;
  test.op = id_of_op(o.op);
  test.dtype = id_of_dtype(o.from);
  test.id = "l2." + std::string(family) + "." + test.op + "." + test.dtype;
  test.level = Level::L2;
  return test;
}

// More inputs than fit the time of --quick.
void add_dense(Tests& tests, const Operation& o) {
  Test dense = make_test("dense", o);
  dense.quick = false;
  dense.limit_seconds = 300;
  dense.run = [o](Context& context) { run_cases(context, o, kDenseCases); };
  tests.push_back(std::move(dense));
  if (o.from != PGR_DTYPE_F32 || o.source_count() > 1) return;
  Test all = make_test("exhaustive", o);
  all.quick = false;
  all.on_demand = true;
  all.limit_seconds = 24 * 3600;
  all.run = [o](Context& context) { run_exhaustive(context, o); };
  tests.push_back(std::move(all));
}

void add_alu(Tests& tests, const Operation& o) {
  Test test = make_test("alu", o);
  test.run = [o](Context& context) { run_cases(context, o, kQuickCases); };
  tests.push_back(std::move(test));
  const bool is_exhaustive = o.source_count() == 1 && width_of(o.from) <= 16;
  if (is_float(o.from) && o.op != PGR_OP_WHERE && !is_exhaustive) add_dense(tests, o);
}

}  // namespace

void add_alu_tests(Tests& tests) {
  for (const sdk::OpInfo& op : sdk::all_ops()) {
    const bool has_own_family = op.number == PGR_OP_CAST || op.number == PGR_OP_BITCAST;
    if (op.op_class != PGR_OP_CLASS_ALU || has_own_family) continue;
    for (uint32_t dtype = PGR_DTYPE_BOOL; dtype < PGR_DTYPE_COUNT; ++dtype) {
      const Operation o = make_operation(op.number, dtype);
      if (is_operation(o.op, o.from, o.to)) add_alu(tests, o);
    }
  }
}

}  // namespace plugrad::conformance
