// Tests each op of the mandatory set on f32, i32 and bool.
#include <algorithm>

#include "conformance/kernels/elements.h"
#include "conformance/kernels/mandatory/core.h"
#include "plugrad/sdk/op_info.h"

namespace plugrad::conformance {
namespace {

constexpr size_t kMandatoryCases = 1024;
constexpr uint32_t kDtypes[] = {PGR_DTYPE_BOOL, PGR_DTYPE_I32, PGR_DTYPE_F32};

constexpr uint32_t kAlu[] = {PGR_OP_ADD,   PGR_OP_MUL,   PGR_OP_NEG,  PGR_OP_IDIV,   PGR_OP_MOD,
                             PGR_OP_MAX,   PGR_OP_RECIP, PGR_OP_SQRT, PGR_OP_AND,    PGR_OP_OR,
                             PGR_OP_XOR,   PGR_OP_SHL,   PGR_OP_SHR,  PGR_OP_CMPLT,  PGR_OP_CMPEQ,
                             PGR_OP_CMPNE, PGR_OP_WHERE, PGR_OP_CAST, PGR_OP_BITCAST};
constexpr uint32_t kMoves[] = {PGR_OP_PARAM, PGR_OP_ARRAY, PGR_OP_CONST, PGR_OP_LOAD, PGR_OP_STORE};

template <typename Ops>
bool is_among(const Ops& ops, uint32_t op) {
  return std::find(std::begin(ops), std::end(ops), op) != std::end(ops);
}

// One test lists all missing claims; the tests of missing ops are unsupported.
void run_claims(Context& context) {
  std::string missing;
  for (const sdk::OpInfo& op : sdk::all_ops())
    for (uint32_t dtype : kDtypes)
      if (is_mandatory(op.number, dtype) && !context.device().claims(op.number, dtype))
        missing +=
            (missing.empty() ? "" : ", ") + std::string(op.name) + " on " + id_of_dtype(dtype);
  expect(missing.empty(),
         "the device does not claim what every device must have (docs/kernel-ir.md): " + missing);
}

void run_storage(Context& context) {
  for (uint32_t dtype : kDtypes)
    expect(context.device().stores(dtype),
           "caps.storage_dtypes lacks " + id_of_dtype(dtype) + ", which every device must store");
}

void add_mandatory(Tests& tests, const Operation& o) {
  Test test;
  test.op = id_of_op(o.op);
  test.dtype = id_of_dtype(o.from);
  test.id = "l1.ops." + test.op + "." + test.dtype;
  if (o.op == PGR_OP_CAST || o.op == PGR_OP_BITCAST) test.id += "." + id_of_dtype(o.to);
  test.run = [o](Context& context) {
    Random random(context.seed());
    run_operation(context, o, make_cases(o, kMandatoryCases, random));
  };
  tests.push_back(std::move(test));
}

}  // namespace

bool is_mandatory(uint32_t op, uint32_t dtype) {
  const bool is_core = dtype == PGR_DTYPE_BOOL || dtype == PGR_DTYPE_I32 || dtype == PGR_DTYPE_F32;
  if (!is_core) return false;
  if (op == PGR_OP_GROUP_ID || op == PGR_OP_LOOP) return dtype == PGR_DTYPE_I32;
  if (op == PGR_OP_IF) return dtype == PGR_DTYPE_BOOL;
  if (is_among(kMoves, op)) return true;
  if (op == PGR_OP_CAST) return true;
  if (op == PGR_OP_BITCAST) return dtype != PGR_DTYPE_BOOL;
  return is_among(kAlu, op) && is_operation(op, dtype, make_operation(op, dtype).to);
}

void add_mandatory_tests(Tests& tests) {
  add_test(tests, Level::L1, "l1.ops.claims", run_claims);
  add_test(tests, Level::L1, "l1.ops.storage", run_storage);
  for (uint32_t op : kAlu)
    for (uint32_t from : kDtypes)
      for (uint32_t to : kDtypes)
        if (is_operation(op, from, to)) add_mandatory(tests, {op, from, to});
}

}  // namespace plugrad::conformance
