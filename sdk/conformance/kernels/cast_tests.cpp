// Tests every cast and bitcast: on all values of small dtypes; on edges, ties and random values of
// the others.
#include "conformance/kernels/elements.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kCastCases = 3072;

void add_conversion(Tests& tests, uint32_t op, uint32_t from, uint32_t to) {
  if (!is_operation(op, from, to)) return;
  Test test;
  test.op = id_of_op(op);
  test.dtype = id_of_dtype(from);
  test.id = "l2." + test.op + "." + test.dtype + "." + id_of_dtype(to);
  test.level = Level::L2;
  test.run = [o = Operation{op, from, to}](Context& context) {
    Random random(context.seed());
    run_operation(context, o, make_cases(o, kCastCases, random));
  };
  tests.push_back(std::move(test));
}

}  // namespace

void add_cast_tests(Tests& tests) {
  for (uint32_t op : {PGR_OP_CAST, PGR_OP_BITCAST})
    for (uint32_t from = PGR_DTYPE_BOOL; from < PGR_DTYPE_COUNT; ++from)
      for (uint32_t to = PGR_DTYPE_BOOL; to < PGR_DTYPE_COUNT; ++to)
        add_conversion(tests, op, from, to);
}

}  // namespace plugrad::conformance
